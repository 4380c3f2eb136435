"""Each case of Malhar's tests for files, each defect of Malhar and Beam, and each kind of bad input has a test.

A case is `class: test`, as Malhar names it; `path::test[id]` is a test here. What dagkit does not have is named in
docs/coming-from-apex.md, in the words that are given.
"""

import re
from collections.abc import Iterator

from tests.lint.breach import ROOT, Breach, line_of

FINDING, READING = "operators/finding/test_apex_cases.py::", "operators/reading/test_apex_readers.py::"
WRITING, SLICES = "operators/writing/test_file_output.py::", "operators/writing/test_slices.py::"
PARTS, BAD = "operators/writing/test_part_writer.py::", "operators/test_bad_input.py::"
MESSAGES, QUEUES = "operators/test_bad_messages.py::", "operators/queues/test_on_rabbitmq.py::"
NAMES = "operators/test_names_of_bytes.py::"
SQL, KAFKA = "operators/sql/test_sql_writer.py::", "operators/kafka/test_writing.py::"
POLICY, READS = "operators/finding/test_file_policy.py::", "operators/kafka/test_reading.py::"
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
DEFECTS = {
    "Malhar": {
        "A: a last line without a newline is lost": f"{READING}test_bug_a_a_last_line_without_a_newline_is_a_record",
        "B: characters count as bytes": f"{READING}test_bug_b_characters_of_several_bytes_make_no_further_records",
        "C: a CR LF is divided": f"{READING}test_bug_c_a_newline_that_two_reads_divide_ends_one_line",
        "8.3: files stay temporary": f"{WRITING}test_bug_8_3_what_was_written_is_complete_at_the_end_of_a_launch",
        "8.4: the first open deletes": (
            f"{WRITING}test_bug_8_4_files_of_others_stay_when_a_file_of_a_similar_name_is_begun"
        ),
        "8.5: a window that failed leaves bytes": f"{WRITING}test_failed_write",
        "8.5: truncated inside compressed content": f"{WRITING}test_bug_8_5_a_crash_leaves_compressed_parts_whole",
        "8.6: partitions collide": f"{WRITING}test_bug_8_6_two_partitions_that_choose_one_name_write_a_file_each",
    },
    "Beam": {
        "D1: a cut within the first delimiter loses a record": (
            "operators/reading/test_line_cases.py::test_lines[a cut within the length of a delimiter]"
        )
    },
}
BAD_INPUT = {
    "files": {
        "vanished": f"{BAD}test_a_file_that_vanished_or_shrank_is_read_when_it_is_back[vanish]",
        "shrunk": f"{BAD}test_a_file_that_vanished_or_shrank_is_read_when_it_is_back[shrink]",
        "permission denied": "cli/running/test_permissions.py::test_a_denied_permission_is_reported_and_loses_nothing",
        "a circle of folders": f"{SPLITTER}test_links_are_followed_and_circles_end",
        "a FIFO, device or socket that is named": (
            f"{BAD}test_what_is_no_regular_file_is_named_and_others_are_read_then"
        ),
        "a FIFO or device in a folder": (
            "cli/inspecting/test_files.py::test_what_is_no_regular_file_is_listed_with_its_kind"
        ),
        "a path with a newline, or that is not UTF-8": (
            f"{NAMES}test_an_application_reads_such_files_and_its_ledger_proves_it"
        ),
        "a full disk": f"{BAD}test_a_full_disk_is_named_with_file_and_byte_and_nothing_is_lost",
        "a pattern that backtracks": f"{BAD}test_a_pattern_that_backtracks_takes_no_longer",
    },
    "contents": {
        "truncated or corrupt": f"{BAD}test_a_damaged_file_ends_the_launch_with_its_place",
        "gzip": f"{BAD}GOOD[a.gz]",
        "zstd": f"{BAD}GOOD[a.zst]",
        "Parquet": f"{BAD}GOOD[a.parquet]",
        "Avro": f"{BAD}GOOD[a.avro]",
        "a wrong schema": f"{BAD}test_content_that_does_not_fit_is_named[columns-mismatched]",
        "text that is not UTF-8": f"{BAD}test_content_that_does_not_fit_is_named[text-undecodable]",
    },
    "messages and tables": {
        "a topic that is not there": f"{MESSAGES}test_a_topic_that_is_not_there",
        "refused credentials": f"{READS}test_refused_credentials_end_the_launch_and_the_password_is_not_shown",
        "refused credentials of a queue": f"{QUEUES}test_what_the_broker_refuses_ends_the_run_and_no_secret_is_shown",
        "refused credentials of a database": f"{SQL}test_a_database_that_refuses_is_named_and_no_secret_is",
        "offsets that retention removed": f"{MESSAGES}test_offsets_that_were_removed_before_they_were_read",
        "a partition that is added": (
            f"{READS}test_a_pattern_finds_topics_and_later_launches_find_new_topics_and_partitions"
        ),
        "a record that its decoder refuses": f"{MESSAGES}test_a_message_that_its_decoder_refuses",
        "a message that is no path": (
            "operators/queues/test_queue_input.py::test_a_rejected_message_that_no_output_takes_fails_the_run_and_stays"
        ),
        "a path that is not there": f"{FINDING}test_base_a_file_that_is_not_there_ends_the_launch_and_is_named",
        "a table whose columns changed": "operators/sql/test_sql_reader.py::test_a_table_that_does_not_fit_is_named",
        "the same while it is written": (
            f"{SQL}test_a_table_that_changes_while_it_is_written_stops_the_run_and_is_continued"
        ),
        "a database that is full": f"{SQL}test_a_database_that_is_full_is_waited_for",
        "the same of PostgreSQL": f"{SQL}test_a_postgres_whose_disk_is_full_is_waited_for",
        "a database that is down at the commit": f"{SQL}test_a_server_that_dies_is_waited_for",
        "a row that the table refuses": f"{SQL}test_a_row_that_the_table_refuses_is_named",
        "a commit whose answer was lost": f"{SQL}test_a_commit_whose_answer_is_lost_counts_once",
        "the same of Kafka": f"{KAFKA}test_commits_whose_answers_are_lost_are_found_by_the_same_launch",
        "a transaction that another producer fenced": f"{MESSAGES}test_a_transaction_that_another_producer_fenced",
        "a DataFrame with types that are not carried": (
            "dataframes/test_carried_types.py::test_every_other_type_is_refused_with_its_column"
        ),
        "a file of SQLite that is not there": (
            "operators/sql/test_sql_reader.py::test_a_file_that_is_not_there_is_reported_and_not_created"
        ),
        "a broker that does not answer": f"{READS}test_a_launch_waits_for_a_broker_that_does_not_answer",
    },
}
LISTS = {**MALHAR, **DEFECTS, **BAD_INPUT}


def cases_have_tests() -> Iterator[Breach]:
    path = "tests/lint/cases.py"
    text = (ROOT / path).read_text(encoding="utf-8")
    for cases in LISTS.values():
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
