"""Each case of Malhar's tests for files has a test.

A case is `class: test`, as Malhar names it; `path::test[id]` is a test here. What dagkit does not have is named in
docs/coming-from-apex.md, in the words that are given.
"""

import re
from collections.abc import Iterator

from tests.lint.breach import ROOT, Breach, line_of

FINDING, READING = "operators/finding/test_apex_cases.py::", "operators/reading/test_apex_readers.py::"
WRITING, SLICES = "operators/writing/test_file_output.py::", "operators/writing/test_slices.py::"
PARTS, POLICY = "operators/writing/test_part_writer.py::", "operators/finding/test_file_policy.py::"
SPLITTER, FOLLOWER = "operators/finding/test_splitter.py::", "scaling/test_follower.py::"


def _here(test: str) -> str:
    """A test of Malhar as it is called here: `testTimeScan` is `test_time_scan`."""
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", test)


MALHAR = {
    "FileSplitterInputTest": {
        **{
            test: f"{FINDING}{_here(test)}"
            for test in (
                *("testFileMetadata", "testIdempotency", "testTimeScan", "testTrigger"),
                *("testRecursive", "testIdempotencyWithBlocksThreshold", "testFileModificationTest"),
                *("testMultipleNestedInput", "testEmptyDirCopy"),
            )
        },
        "testScannerFilterForDuplicates": f"{FINDING}test_file_metadata",
        "testBlockMetadataNoSplit": f"{FINDING}test_file_metadata",
        "testBlocksThreshold": f"{FINDING}test_files_processed_are_those_that_were_begun_in_a_window",
        "testBlockMetadataWithSplit": f"{FINDING}test_idempotency_with_blocks_threshold",
        "testFirstWindowAfterRecovery": f"{POLICY}test_what_is_new_or_has_changed_is_read_once",
        "testRecoveryOfPartialFile": f"{FINDING}test_idempotency_with_blocks_threshold",
        "testRecoveryOfBlockMetadataIterator": f"{FINDING}test_idempotency_with_blocks_threshold",
        "testSingleFile": f"{SPLITTER}test_blocks_lie_end_to_end_and_the_last_says_so",
    },
    "FileSplitterBaseTest": {
        "testFileMetadata": f"{FINDING}test_base_file_metadata",
        "testBlockMetadataNoSplit": f"{FINDING}test_base_file_metadata",
        "testBlockMetadataWithSplit": f"{FINDING}test_base_blocks_threshold",
        "testBlocksThreshold": f"{FINDING}test_base_blocks_threshold",
        "testSplitterInApp": f"{FINDING}test_base_blocks_threshold",
    },
    "FileSplitterTest": {"all, with lines of two lengths": f"{FINDING}test_idempotency_with_blocks_threshold"},
    "AbstractBlockReaderTest": {
        "testAdjustedCount": "scaling/test_apex.py::test_adjusted_count",
        "testProcessStatsForPartitionCount": f"{FOLLOWER}test_process_stats_for_partition_count",
        "testProcessStatsForRepeatedPartitionCount": f"{FOLLOWER}test_process_stats_for_repeated_partition_count",
        "testPartitioning": "operators/reading/test_block_reader.py::test_a_reader_follows_its_backlog",
        "testCountersTransfer": f"{READING}test_counters_transfer",
    },
    "FSLineReaderTest, ReadAheadLineReaderTest, FSSliceReaderTest and FSRecordReaderTest": {
        **{
            test: f"{READING}{_here(test)}"
            for test in (
                *("testTest", "testMultipleBlocks", "testNonConsecutiveBlocks", "testBytesReceived"),
                *("testBlockSize", "testDelimitedRecords", "testFixedWidthRecords"),
            )
        },
        "testMissingRecordLength": (
            "operators/reading/test_reader_contexts.py::test_contexts_that_do_not_fit_do_not_compile[missing]"
        ),
    },
    "PartFileWriterTest": {"testBlockWriting": f"{SLICES}test_block_writing"},
    "AbstractFileOutputOperatorTest": {
        **{
            f"test{files}{written}Write": f"{WRITING}test_{written.lower()}_write[{files}]"
            for written in ("Completed", "Failed")
            for files in ("SingleFile", "MultiFile", "SingleRollingFile", "MultiRollingFile")
        },
        "testSingleFileCompletedOverwriteInitial": f"{WRITING}test_completed_write[OverwriteInitial]",
        "testMultiFileCompletedCache1": f"{WRITING}test_completed_write[Cache1]",
        "testSingleRollingFileFailedWrite1": f"{WRITING}test_single_file_multi_rolling_failure",
        "testSingleRollingFileEmptyWindowsWrite": f"{WRITING}test_windows_without_data_write_nothing",
        "singleFileMultiRollingFailure": f"{WRITING}test_single_file_multi_rolling_failure",
        "validateNothingWrongTest": f"{WRITING}test_validate_negative_max_length",
        "validateNegativeMaxLengthTest": f"{WRITING}test_validate_negative_max_length",
        **{
            test: f"{WRITING}{_here(test)}"
            for test in (
                *("testRecoveryOfOpenFiles", "testPeriodicRotation"),
                *("testPeriodicRotationWithEviction", "testGzipCompression"),
            )
        },
        **dict.fromkeys(
            ("testSnappyCompressionSimple", "testSnappyStreamProvider", "testChainFilters"),
            "Snappy, ciphers, and chains of filters",
        ),
    },
    "AbstractSingleFileOutputOperatorTest": {"all": f"{WRITING}test_the_file_name_of_a_partition_has_its_number"},
    "GenericFileOutputOperatorTest": {
        **{
            test: f"{WRITING}{_here(test)}"
            for test in ("testIdleWindowsFinalize", "testTupleCountFinalize", "testRunTestApplication")
        },
        "testRotationWithNoData": f"{WRITING}test_windows_without_data_write_nothing",
    },
    "FSRecordCompactionOperatorTest": {"testRotate": f"{PARTS}test_rotate_sends_each_finished_part"},
}


def cases_have_tests() -> Iterator[Breach]:
    path = "tests/lint/cases.py"
    text = (ROOT / path).read_text(encoding="utf-8")
    for cases in MALHAR.values():
        for case, place in cases.items():
            if not _exists(place):
                help_ = "name the test of this case, or what docs/coming-from-apex.md says of it"
                yield Breach(path, line_of(text, f'"{case}"'), f"{case} has no {place}", help_)


def _exists(place: str) -> bool:
    path, separator, name = place.partition("::")
    if not separator:
        return place in (ROOT / "docs/coming-from-apex.md").read_text(encoding="utf-8")
    name, _, case = name.rstrip("]").partition("[")
    module = (ROOT / "tests" / path).read_text(encoding="utf-8")
    return re.search(rf"^(def )?{name}\b", module, re.MULTILINE) is not None and (not case or f'"{case}"' in module)
