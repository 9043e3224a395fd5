"""What bench/peers.py is made of: an environment, contestants, rounds, a report."""
