"""A load that was asked for, bounded in requests and seconds: what is sent, and when each token came back."""
