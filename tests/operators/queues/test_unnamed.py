"""Messages without an ID: equal ones are different messages, and one that is delivered again is recognised."""

from dagkit_operators.queues.queue_message import UnnamedMessages


def nowhere(name):
    return False


def test_a_new_message_is_distinguished_from_equal_ones():
    messages = UnnamedMessages()
    assert [messages.add("a").id, messages.add("b").id, messages.add("a").id] == ["a-0", "b-1", "a-2"]


def test_each_taken_message_is_recognised_until_the_broker_has_removed_it():
    messages = UnnamedMessages()
    first, second = messages.add("a"), messages.add("a")
    assert messages.find("a", nowhere) == first
    assert messages.find("a", {first.id}.__contains__) == second, "the first one is delivered already"
    messages.remove(first)
    assert messages.find("a", nowhere) == second
    messages.remove(second)
    assert messages.find("a", nowhere) is None
    assert messages.taken == {}
