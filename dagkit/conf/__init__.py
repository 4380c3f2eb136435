"""Configuration: property files, the grammar of their keys, what each key sets, and applications declared as data.

conf, faults = load(Sources.here(application=…, folder=…, files=…, definitions=…))      dagkit.conf.sources.sources
application = declared_application(path)                                                dagkit.conf.declared.declarative

settings = Settings(conf, application)                                                  dagkit.conf.apply.settings
settings.configure_application(application)                 before its populate_dag runs
settings.configure(name, module)                            before its populate_dag runs
settings.application_attributes()
settings.configure(name, operator)
settings.operator_attributes(name)
settings.port_attributes(name, port, output=…, connected=…)
settings.unifier_attributes(name, port, connected=…)
settings.stream(name)
settings.unmatched(allow_unknown=…)                         after all other calls
"""
