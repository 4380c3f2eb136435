# The names of this package, each with the module that defines it. Type checkers and `__init__.py` read this list.

from dagkit.backends.spark.session.session import has_kept_java as has_kept_java
from dagkit.backends.spark.session.session import local_session as local_session
from dagkit.backends.spark.session.session import running_session as running_session
from dagkit.backends.spark.session.session import session_at as session_at
from dagkit.backends.spark.session.session import start_faster_next_time as start_faster_next_time
from dagkit.backends.spark.session.session import stop_session as stop_session
from dagkit.backends.spark.session.session import submitted_master as submitted_master
from dagkit.backends.spark.session.session import web_page as web_page
from dagkit.backends.spark.window.backend import SparkBackend as SparkBackend
