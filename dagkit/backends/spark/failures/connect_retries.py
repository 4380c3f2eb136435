"""How long a client asks a Spark Connect server that does not answer."""

from pyspark.sql import SparkSession
from pyspark.sql.connect.client.retries import DefaultPolicy, RetryPolicyState

_RETRIES = 12


class Retries(DefaultPolicy):
    """Retries a call for about 15 seconds; Spark's own policy does so for ten minutes, and reports nothing meanwhile.

    Once a call has failed for so long, the later ones are not retried: those that end a session are several. A launch
    that opened the session waits for the server itself, and then opens another one.
    """

    def __init__(self) -> None:
        super().__init__(max_retries=_RETRIES, initial_backoff=50, backoff_multiplier=2.0, max_backoff=2000)
        self.has_given_up = False

    def to_state(self) -> RetryPolicyState:
        return _Call(self)


class _Call(RetryPolicyState):
    """The retries of one call."""

    def __init__(self, policy: Retries) -> None:
        super().__init__(policy)
        self._of_session = policy

    def next_attempt(self, exception: BaseException | None = None) -> int | None:
        pause = None if self._of_session.has_given_up else super().next_attempt(exception)
        if pause is None:
            self._of_session.has_given_up = True
            # The client would raise it, too, after a warning that names its own code.
            if exception is not None:
                raise exception
        return pause


def retry_briefly(session: SparkSession) -> None:
    """Let the client of a Connect session retry calls for some seconds only."""
    session.client.set_retry_policies([Retries()])


def has_given_up(session: SparkSession) -> bool:
    """Whether the client of a Connect session asks the server no longer; never, with Spark's own policy."""
    policies = session.client.get_retry_policies()
    return any(isinstance(policy, Retries) and policy.has_given_up for policy in policies)
