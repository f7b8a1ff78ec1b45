"""Linear models of texts and trees over signals: what they see, how they are trained, and the files that keep them."""
