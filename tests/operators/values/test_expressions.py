"""An expression or key says the same of one value and of a column of them, in whatever form the column is."""

import copy
import operator as op
import pickle
import re
from dataclasses import dataclass
from itertools import compress

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit import Arrowed, Batch, Constant, Lines, Listed
from dagkit.engine.program.program import Keying
from dagkit.plan.portable import portable
from dagkit.schema.routing import routing_code
from dagkit_operators import Expression, Filter, Record, value
from dagkit_operators.values.keys import RoutingKey, key_of, keys_of
from tests.cases import cases
from tests.operators.ways import lines

ALPHABET = [b"a", b"A", b".", b"|", b"\r", b"\xc3\xa4", b"\xc3", b"\xa4", b"\xff", b"\xe2\x82\xac", b"\xce\xa3", b" "]
LINE = st.lists(st.sampled_from(ALPHABET), max_size=5).map(b"".join)
TEXT = st.text("aA.|\r\nä\udcc3\udca4\udcff€Σ ", max_size=3)
VALID_TEXT = st.text("aA.|\r\nä€Σ ", max_size=3)
NUMBERS = st.integers(-1, 6)


TEXTS = st.sampled_from([value, value.upper(), value.lower(), value.strip(), value.strip().upper()])
OF_TEXTS = [Expression.starts_with, Expression.ends_with, Expression.contains, op.eq, op.ne, op.lt, op.ge]
ASKED = st.one_of(
    *(st.builds(ask, TEXTS, TEXT) for ask in OF_TEXTS),
    *(st.builds(ask, TEXTS.map(Expression.length), NUMBERS) for ask in (op.gt, op.eq)),
    st.builds(lambda of, text: of.matches(re.escape(text) + ".*"), TEXTS, VALID_TEXT),
)
CLAIMS = st.recursive(
    ASKED,
    lambda inner: st.builds(op.and_, inner, inner) | st.builds(op.or_, inner, inner) | st.builds(op.invert, inner),
    max_leaves=4,
)


def lines_of(bodies: list[bytes], delimiter: bytes = b"\n") -> Lines:
    return lines(*(body.replace(delimiter, b"") for body in bodies), delimiter=delimiter)


DELIMITERS = st.sampled_from([b"\n", b"|", b"\r\n", b"\xe2\x82\xac"])


@given(claim=CLAIMS, bodies=st.lists(LINE, max_size=6), delimiter=DELIMITERS)
def test_of_lines_it_says_what_it_says_of_each_and_keeps_those_or_leaves_that_to_a_mask(claim, bodies, delimiter):
    column = lines_of(bodies, delimiter)
    says = [claim(text) for text in column.values()]
    assert claim.mask(column).to_pylist() == says
    kept = claim.kept(column)
    assert kept is None or list(kept.values()) == list(compress(column.values(), says))


@pytest.mark.parametrize(
    "claim",
    [
        value.starts_with("a"),
        ~value.starts_with("ab"),
        ~~value.starts_with(""),
        value == "a",
        value != "",
        ~(value != ""),
        ~value.starts_with("a") & ~value.starts_with("b"),
        value.starts_with("a") & (value.length() > 1),
    ],
    ids=repr,
)
def test_how_lines_begin_is_enough_to_keep_them(claim):
    texts = ["a", "", "ab", "b", "ba", "aa"]
    column = lines(*texts)
    kept = claim.kept(column)
    assert list(kept.values()) == [text for text in texts if claim(text)]
    assert claim.kept(Listed(texts)) is None


@given(claim=CLAIMS, texts=st.lists(st.text("aA.|\n\x00äΣ ", max_size=4), max_size=6))
def test_of_any_column_it_says_what_it_says_of_each(claim, texts):
    alone = [claim(text) for text in texts]
    for column in (Listed(texts), Arrowed(pa.array(texts, pa.string()))):
        assert claim.mask(column).to_pylist() == alone
    assert claim.mask(Constant("a", 3)).to_pylist() == [claim("a")] * 3


EDGES = [0, -1, 1, 2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]
WHOLE = st.sampled_from(EDGES) | st.integers(-(2**63), 2**63 - 1)
REAL = st.floats() | WHOLE.map(float)


@given(
    compare=st.sampled_from([op.eq, op.ne, op.lt, op.le, op.gt, op.ge]),
    constant=WHOLE | REAL | st.booleans() | st.integers(),
    column=st.lists(WHOLE, max_size=5).map(lambda numbers: pa.array(numbers, pa.int64()))
    | st.lists(REAL, max_size=5).map(lambda numbers: pa.array(numbers, pa.float64()))
    | st.lists(st.integers(-128, 127), max_size=5).map(lambda numbers: pa.array(numbers, pa.int8()))
    | st.lists(st.floats(width=32), max_size=5).map(lambda numbers: pa.array(numbers, pa.float32())),
)
def test_of_numbers_it_says_what_it_says_of_each(compare, constant, column):
    claim = compare(value, constant)
    assert claim.mask(Arrowed(column)).to_pylist() == [claim(number) for number in column.to_pylist()]


def test_what_is_missing_is_asked_as_python_has_it_and_bytes_are_compared_with_bytes():
    column = Arrowed(pa.array(["a", None], pa.string()))
    assert (value == "a").mask(column).to_pylist() == [True, False]
    assert (value != "a").mask(column).to_pylist() == [False, True]
    assert [(value == b"a")(item) for item in (b"a", b"b", 7, None)] == [True, False, False, False]


@given(made=TEXTS, bodies=st.lists(LINE, max_size=6))
def test_what_it_makes_of_a_column_is_what_it_makes_of_each(made, bodies):
    column = lines_of(bodies)
    assert list(made.of(column).values()) == [made(text) for text in column.values()]


@given(claim=CLAIMS)
def test_it_is_what_it_looks_like(claim):
    """What is printed can be typed in again, is copied, and travels between processes."""
    printed, travelled = eval(repr(claim), {"value": value}), pickle.loads(pickle.dumps(claim))  # noqa: S307, S301
    for other in (printed, travelled, copy.copy(claim), copy.deepcopy(claim)):
        assert (repr(other), portable(other)) == (repr(claim), portable(claim))


@pytest.mark.parametrize(
    ("claim", "holds_for"),
    [
        (value.starts_with("a"), ["a", "ab", "a\n"]),
        (~value.starts_with("a"), ["", "ba", "Ä"]),
        (value.ends_with("b"), ["ab"]),
        (value.contains("b"), ["ab", "ba"]),
        (value == "ab", ["ab"]),
        (value != "ab", ["", "a", "a\n", "ba", "Ä"]),
        (value < "ab", ["", "a", "a\n"]),
        (value >= "ab", ["ab", "ba", "Ä"]),
        (value.matches("a."), ["ab"]),
        (value.matches(re.compile("A.", re.IGNORECASE | re.DOTALL)), ["ab", "a\n"]),
        (value.length() == 2, ["ab", "ba", "a\n"]),
        (value.lower() == "ä", ["Ä"]),
        (value.strip() == "a", ["a", "a\n"]),
        ((value == "a") | (value == "ab"), ["a", "ab"]),
        (value.starts_with("a") & ~value.ends_with("b"), ["a", "a\n"]),
    ],
    ids=repr,
)
def test_what_each_asks(claim, holds_for):
    texts = ["", "a", "ab", "ba", "a\n", "Ä"]
    assert [text for text in texts if claim(text)] == sorted(holds_for, key=texts.index)


NO_WORDS = "join expressions with &, | and ~, not with and, or and not"


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        # without parentheses, Python would compare what was joined, and every line would be kept
        (lambda: ~value.starts_with("#") & value != "", TypeError, "value is no condition, and & joins conditions"),
        (lambda: value.strip() | value.contains("a"), TypeError, "write (value.strip() == …) | (…), each comparison"),
        (lambda: value.contains("a") & value.length() > 1, TypeError, "value.length() is no condition"),
        (lambda: value.starts_with("a") and True, TypeError, NO_WORDS),
        (lambda: not value, TypeError, NO_WORDS),
        (lambda: 1 < value < 3, TypeError, NO_WORDS),
        (lambda: value & (lambda text: True), TypeError, "unsupported operand"),
        (lambda: value | "a", TypeError, "unsupported operand"),
        (lambda: value.startswith("."), AttributeError, "no 'startswith'; did you mean 'starts_with'?"),
        (lambda: value.strip().endswith("."), AttributeError, "did you mean 'ends_with'?"),
        (lambda: value.qqq(3), AttributeError, "known here: 'contains', 'ends_with'"),
    ],
)
def test_what_is_no_expression_is_refused_with_what_to_write(make, error, words):
    with pytest.raises(error, match=re.escape(words)):
        make()


@cases(
    "claim, item, words",
    ("a text and bytes", value == b"END", "END", r"'END' == b'END': texts and bytes are never equal; ask for 'END'"),
    ("what was made of a text", value.strip() != b"\xff", " a", r"never equal; ask for '\ufffd'"),
    ("bytes and a text", value == "END", b"END", r"b'END' == 'END': texts and bytes are never equal; ask for b'END'"),
)
def test_texts_and_bytes_are_not_compared(claim, item, words):
    of_lines = [lines(item)] * isinstance(item, str)
    for column in (Listed([item]), Arrowed(pa.array([item])), *of_lines):
        with pytest.raises(TypeError, match=words):
            claim.mask(column)
    with pytest.raises(TypeError, match=words):
        claim(item)


def test_a_field_is_one_of_an_object_or_a_mapping_and_may_be_a_condition_by_itself():
    kept = value.field("good") & (value.field("size") > 1)
    assert [kept({"good": good, "size": 2}) for good in (True, False)] == [True, False]
    assert value.field("real")(3 + 4j) == 3
    assert (value.field("name").upper() == "ANNA")({"name": "Anna"})


def test_the_right_side_is_asked_only_where_the_left_one_needs_it():
    """As with `and`: what the left side excludes may be something that the right side cannot be asked of."""
    asked = []

    class Asked(Expression):
        def __call__(self, item):
            asked.append(item)
            return int(item) > 3

        def mask(self, column):
            return pa.array([self(item) for item in column.values()])

    claim = (value == "7") & Asked("matches", value, "", 0)
    assert claim.mask(lines("7", "x", "")).to_pylist() == [True, False, False]
    assert asked == ["7"]


def test_operators_with_other_expressions_are_others():
    assert Filter(value == "a") == Filter(value == "a")
    assert Filter(value == "a") != Filter(value == "b")
    assert Filter(value.upper() == "a") != Filter(value == "a")
    assert len({value == "a", value == "a", value == "b"}) == 2


@pytest.mark.parametrize("text", ["a", "", "ä", "\udcff", "a\n", "\r"])
def test_nothing_is_decoded_where_bytes_suffice(text, monkeypatch):
    decoded, values = [], Lines.values
    monkeypatch.setattr(Lines, "values", lambda self: decoded.append(len(self)) or values(self))
    value.starts_with(text).mask(lines(b"a", b"\xff", delimiter=b"\r\n"))
    assert bool(decoded) == bool(set(text) & {"\udcff", "\r", "\n"})


def test_a_pattern_is_matched_in_linear_time():
    """With a matcher that tries one way after the other, this test does not end."""
    assert not value.matches("(a+)+b")("a" * 300)


@cases(
    "pattern, item, is_matched",
    ("bytes", b"\xff.", b"\xff\xe4", True),
    ("bytes of a compiled pattern", re.compile(b"A.", re.IGNORECASE), b"ab", True),
    ("a byte that is no text", ".b", "\udcffb", True),
    ("classes are ASCII", r"\w", "ä", False),
    ("any letter", r"\pL", "ä", True),
)
def test_what_a_pattern_matches(pattern, item, is_matched):
    assert value.matches(pattern)(item) is is_matched


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: value.matches("(?=a)"), ValueError, "pattern '(?=a)': invalid perl operator: (?=; use the RE2 syntax"),
        (lambda: value.matches(re.compile("a", re.VERBOSE)), ValueError, "RE2 has no flag re.VERBOSE"),
        (lambda: value.matches(5), TypeError, "a pattern is a text, bytes or a compiled pattern, not 5"),
        (lambda: value.matches("a")(b"a"), TypeError, "the pattern 'a' cannot match b'a', which is no str"),
    ],
)
def test_a_pattern_that_cannot_be_matched_is_refused(make, error, words):
    with pytest.raises(error, match=re.escape(words)):
        make()


@dataclass(frozen=True)
class Order:
    number: int
    text: str


ORDERS = [Order(number, text) for number, text in [(1, "a"), (2, "b"), (1, "c")]]
DICTS = [vars(order) for order in ORDERS]
KEYS = ["number", lambda one: one["number"] if isinstance(one, dict) else one.number, value.field("number")]
WAYS = {
    "objects": Batch.of(ORDERS),
    "mappings": Batch.of(DICTS),
    "records": Batch.of([Record(0, order) for order in ORDERS]),
    "records of mappings": Batch.of([Record(0, each) for each in DICTS]),
    "columns": Batch({"number": Listed([1, 2, 1]), "text": Listed(["a", "b", "c"])}, Order),
    "columns of records": Batch({"block_id": Constant(0, 3), "value": Listed(ORDERS)}, Record),
}


@pytest.mark.parametrize("key", KEYS, ids=["a text", "a function", "an expression"])
@pytest.mark.parametrize("batch", WAYS.values(), ids=WAYS)
def test_every_kind_of_key_sees_the_same(key, batch):
    assert list(keys_of(key, batch)) == [key_of(key, item) for item in batch.items()] == [1, 2, 1]
    keying = Keying(None, RoutingKey(key))
    codes = [routing_code(number) for number in (1, 2, 1)]
    assert [keying.code(item) for item in batch.items()] == codes
    assert keying.codes(batch).tolist() == [code & 0xFFFFFFFF for code in codes]


def test_a_field_of_the_record_itself_is_no_key():
    with pytest.raises(AttributeError, match="'Order' object has no attribute 'block_id'"):
        key_of("block_id", Record(7, ORDERS[0]))
