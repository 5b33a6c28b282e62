"""What is heard, handed to other programs: sockets, brokers, files. One module per kind of program."""
