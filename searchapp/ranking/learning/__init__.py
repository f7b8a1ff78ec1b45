"""Linear models of texts (`linear`), trees over signals (`trees`), and the files that keep models (`model_files`)."""
