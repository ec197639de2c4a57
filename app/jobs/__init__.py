"""Work on data sets that goes on behind: jobs that survive whoever runs them."""
