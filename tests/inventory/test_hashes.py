"""A set that remembers hashes: it answers as a set does, before and after it merges what was added last."""

from array import array

from dagkit.runs.inventory.listing import RECENT, Hashes


def test_it_answers_as_a_set_does():
    known, values = Hashes(), [f"file {number}" for number in range(RECENT + 10)]
    assert all(map(known.add, values))
    assert not any(map(known.add, values[:: RECENT // 7]))
    assert (len(known), "file" in known) == (len(values), False)
    assert all(value in known for value in values[:: RECENT // 7])


def test_most_of_it_takes_eight_bytes_for_each_value():
    known = Hashes()
    for number in range(2 * RECENT):
        known.add(number)
    assert (known._sorted, known._recent) == (array("q", range(2 * RECENT)), set())
