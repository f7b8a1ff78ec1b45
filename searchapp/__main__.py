"""`python -m searchapp` is the same as `searchapp`."""

from searchapp.cli import main

main()
