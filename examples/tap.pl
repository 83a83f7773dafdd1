#!/usr/bin/perl
# SPDX-License-Identifier: BSD-3-Clause
# usage: tap.pl ADDRESS PORT TO_PORT FILE
# Somebody on the way: passes TCP connections to that port on to another one of the
# same address, from the caller's own address, and writes all that goes by to a file.
# "ready" on stdout says that it listens. Ends by a signal. Changes nothing.
use strict;
use warnings;
use IO::Select;
use IO::Socket::INET;

my ($address, $port, $to_port, $file) = @ARGV;
defined $file or die "usage: tap.pl ADDRESS PORT TO_PORT FILE\n";
$SIG{PIPE} = 'IGNORE';
open(my $capture, '>:raw', $file) or die "$file: $!\n";
my $listener = IO::Socket::INET->new(LocalAddr => $address, LocalPort => $port,
	Listen => 64, ReuseAddr => 1) or die "$address, port $port: $!\n";
my $all = IO::Select->new($listener);
my %other;    # the socket to which the bytes of this one go
$| = 1;
print "ready\n";

sub join_sockets {
	my ($from) = @_;
	my $to = IO::Socket::INET->new(PeerAddr => $address,
		PeerPort => $to_port, LocalAddr => $from->peerhost) or return;

	($other{$from}, $other{$to}) = ($to, $from);
	$all->add($from, $to);
}

sub write_all {
	my ($to, $bytes) = @_;

	while (length $bytes) {
		my $n = syswrite $to, $bytes or return;
		substr($bytes, 0, $n, '');
	}
}

while (my @ready = $all->can_read) {
	for my $from (@ready) {
		if ($from == $listener) {
			join_sockets($from->accept // next);
			next;
		}
		my $to = $other{$from} or next;
		if (sysread $from, my $bytes, 1 << 16) {
			syswrite $capture, $bytes;
			write_all($to, $bytes);
			next;
		}
		$all->remove($from, $to);
		delete @other{$from, $to};
		close $_ for $from, $to;
	}
}
