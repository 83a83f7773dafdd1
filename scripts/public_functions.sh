#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: public_functions.sh HEADER...
# Prints "extern NAME" or "inline NAME" for every function that the headers
# offer; fails when it cannot read a declaration, or there is none at all.
exec perl -e '
	my ($found, $bad) = (0, 0);
	for my $file (@ARGV) {
		open(my $f, "<", $file) or die "$file: $!\n";
		local $/;
		my $text = <$f>;
		$text =~ s{/\*.*?\*/}{ }gs;
		$text =~ s{//.*}{}g;
		$text =~ s{\\\n}{ }g;
		$text =~ s{^[ \t]*#.*$}{}mg;
		$text =~ s{__attribute__\s*\(\(.*?\)\)}{ }gs;
		while ($text =~ /\b(ULNET_EXPORT|static\s+inline)\b([^;{}]*)/g) {
			my ($kind, $decl) = ($1, $2);
			if ($decl !~ /^[^()]*?\b(LNet[A-Z]\w+|lnet_\w+|ulrpc_\w+)\s*\(/) {
				$decl =~ s/\s+/ /g;
				print STDERR "$file: no public name:$decl\n";
				$bad = 1;
				next;
			}
			print $kind eq "ULNET_EXPORT" ? "extern" : "inline", " $1\n";
			$found++;
		}
	}
	exit($bad || !$found);
' "$@"
