"""The screens in a browser: a web server that starts the program for each window, and lets in whoever has its token."""
