"""The demo mailbox: takes every mail that Signoff sends on this machine, and lets people look into it."""
