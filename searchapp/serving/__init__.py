"""Screens in a browser: a web server that runs the program for each window, and admits whoever has its token."""
