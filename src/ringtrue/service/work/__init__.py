"""What REST and the pages share: a service, a caller and a question come in, records of the rooms below go out."""
