"""What belongs to the paper alone: its recipes, published numbers, figures and findings."""
