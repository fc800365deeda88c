"""`make bench`: Signoff beside its peers, in one run on one machine, against one provider."""
