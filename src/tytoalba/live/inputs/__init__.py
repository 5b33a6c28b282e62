"""Where live sound comes from: sound cards, pipes, files at their own speed."""
