"""The claims of Ethayarajh (2019) as tests on one's own runs, or on the released figures."""
