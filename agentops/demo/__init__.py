"""The demo world: plainly fictional companies, people with known passwords, and cases worth watching."""
