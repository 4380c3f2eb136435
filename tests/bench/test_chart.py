"""Charts are SVG documents whose bars are as long as the medians that they show."""

from xml.etree.ElementTree import fromstring

from bench._chart import Bar, Chart

NAMESPACE = "{http://www.w3.org/2000/svg}"


def test_bars_are_as_long_as_the_medians():
    chart = Chart("any", "speed, MB/s", [Bar("dagkit, batch", [90, 100, 130]), Bar("a < b & c", [50])])
    drawing = fromstring(chart.svg())  # noqa: S314 - our own document
    ours, theirs = drawing.iter(f"{NAMESPACE}rect")
    assert (ours.get("class"), theirs.get("class")) == ("dagkit", "other")
    assert float(ours.attrib["width"]) == 2 * float(theirs.attrib["width"])
    assert [text.text for text in drawing.iter(f"{NAMESPACE}text")] == [
        "speed, MB/s",
        "dagkit, batch",
        "100",
        "a < b & c",
        "50.0",
    ]
