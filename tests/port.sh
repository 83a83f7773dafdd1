# SPDX-License-Identifier: BSD-3-Clause
# For sourcing.

# free_port NAME: sets that variable to a TCP port that nobody uses, on any of our
# addresses, below those that the system gives to connections. Tests never get the
# same one: it is theirs while a socket of its name is bound (tests/port.h does so, too),
# by a process that ends with its last reader: this shell, and what it started.
free_port() {
	local fd

	exec {fd}< <(exec perl -MIO::Socket -MIO::Poll=POLLERR -e '
		for (1 .. 1000) {
			my $port = 1024 + int rand 31744;
			our $kept = IO::Socket::UNIX->new(Type => SOCK_DGRAM,
				Local => "\0ulnet-port-$port") or next;
			IO::Socket::INET->new(Listen => 1, Proto => "tcp",
				LocalAddr => "0.0.0.0", LocalPort => $port)
				or next;
			syswrite STDOUT, "$port\n";
			my $reader = IO::Poll->new;
			$reader->mask(*STDOUT => POLLERR);
			$reader->poll;
			last;
		}')
	read -r "$1" <&"$fd"
}
