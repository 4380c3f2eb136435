"""What runs: the program of an application as picklable data, and the names, failures and output of its operators."""
