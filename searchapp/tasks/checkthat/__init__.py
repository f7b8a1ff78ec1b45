"""Check-worthiness of the sentences of political debates (CheckThat! 2019, task 1)."""
