"""The demo: a bookshop, its people, an agent that writes a hundred letters, and the story of a crash after the fortieth."""
