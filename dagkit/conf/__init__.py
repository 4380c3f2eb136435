"""Configuration: property files, the grammar of their keys, what each key sets, and applications declared as data.

conf, faults = load(Sources.here(application=…, folder=…, files=…, definitions=…))      dagkit.conf.sources.sources
application = declared_application(path)                                                dagkit.conf.declared.declarative

settings = Settings(conf)                                                               dagkit.conf.apply.settings
scoped = settings.of(settings.name_of(application).value)
scoped.configure_application(application)                   before its populate_dag runs
scoped.configure(name, module)                              before its populate_dag runs
scoped.application_attributes()
scoped.configure(name, operator)
scoped.operator_attributes(name)
scoped.port_attributes(name, port, output=…, connected=…)
scoped.unifier_attributes(name, port, connected=…)
scoped.stream(name)
scoped.unmatched(allow_unknown=…)                           after all other calls
"""
