#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: layering_symbols.sh TREE BUILD [FROM TO]
# Dependencies point down only, in what is linked, too. Finds, by nm of the objects in
# BUILD, which file uses symbols of which other file. (Calls through a table of
# functions do not show; by these a room, which is a folder, calls a room above it.)
# Prints uses that layers.rules does not allow, uses of the simulator by files of the
# product, circles of rooms, and circles of files in one room. Fails if there is any of
# them, but for circles of up to six files. FROM and TO are regular expressions of files
# without ".c": also prints what files FROM use of files TO.
set -euo pipefail
tree=$(cd "$1" && pwd)
cd "$2"

# Circles of more than six files that are known: lines of a room and a number of files.
# A circle may only become shorter, and its number here with it.
known='
'
# What attaches to the product from outside, to try it: libulnetlab.
lab='^(sim/|lnd/simlnd/|lnd/o2iblnd/simqp/|base/env_sim$)'

{
	grep -v '^#' "$tree/scripts/layers.rules" | sed 's/^/rule\t/'
	{
		(cd "$tree" && find base names secure include lnet lnd config rpc sim services \
			tools examples -name '*.c')
		find . -name '*.pb-c.c' | cut -c3-
	} | sed 's/^/source\t/'
	# Tests and benches may have objects of the product's sources of their own.
	find . \( -path ./tests -o -path ./bench \) -prune -o -name '*.o' \
		! -name 'tests_*' ! -name 'bench_*' -print | cut -c3- |
		xargs -r nm -Ag 2>/dev/null | sed 's/^/symbol\t/'
} | exec perl -e '
	my ($known, $lab, $from, $to) = @ARGV;
	my (@rules, %source, %object, %defines, %needs, %uses);
	my ($edges, $wrong) = (0, 0);

	sub wrong { print @_, "\n"; $wrong++; }
	sub room { return $_[0] =~ m{^(.*)/} ? $1 : ""; }

	# lnet/node/.libs/libulnetcore_la-conf.o is of lnet/node/conf.
	sub source_of {
		my ($path) = @_;
		return $object{$path} if exists $object{$path};
		my ($dir, $name) = $path =~ m{^(?:(.*)/)?([^/]*)\.o$};
		$dir = "" unless defined $dir;
		$dir =~ s{/?\.libs$}{};
		$name =~ s{^[^-]*-}{} until $source{"$dir/$name"} || $name !~ /-/;
		return $object{$path} = $source{"$dir/$name"} ? "$dir/$name" : undef;
	}

	while (<STDIN>) {
		chomp;
		my ($kind, $text) = split(/\t/, $_, 2);
		if ($kind eq "rule") {
			push(@rules, [split(/\t/, $text)]);
		} elsif ($kind eq "source") {
			$source{$text =~ s/\.c$//r} = 1;
		} elsif ($text =~ /^([^:]*):[0-9a-f]* +([A-Za-z]) (\S+)$/) {
			my ($path, $type, $name) = ($1, $2, $3);
			my $file = source_of($path) // next;
			if ($type =~ /[Uwv]/) { $needs{$file}{$name} = 1; }
			else { $defines{$name}{$file} = 1; }
		}
	}

	sub may {
		my ($file, $other) = @_;
		my $dir = room($file);
		return 1 if $dir eq room($other);
		for my $r (@rules) {
			my ($folder, @may) = @$r;
			next unless $dir =~ /^(?:$folder)$/;
			s/\@/$dir/g for @may;
			for my $name ($other =~ s{^include/}{}r, "$other.h") {
				for my $may (@may) {
					return 1 if $name =~ /^(?:$may)/;
				}
			}
			return 0;
		}
		return 0;
	}

	# If several files define a symbol, those count whose symbols the file may use.
	for my $file (keys %needs) {
		for my $symbol (keys %{$needs{$file}}) {
			next unless $defines{$symbol} && !$defines{$symbol}{$file};
			my @of = keys %{$defines{$symbol}};
			my @may = grep { may($file, $_) } @of;
			$uses{$file}{$_}{$symbol} = 1 for @may ? @may : @of;
		}
	}

	for my $file (sort keys %uses) {
		for my $other (sort keys %{$uses{$file}}) {
			my $names = join(" ", sort keys %{$uses{$file}{$other}});
			$edges++;
			print "$file -> $other: $names\n"
				if defined $to && "$file $other" =~ /^$from $to$/;
			wrong("$file may not use $other: $names")
				unless may($file, $other);
			wrong("$file uses the simulator, $other: $names")
				if $other =~ /$lab/ && $file !~ m{$lab|^examples/};
		}
	}

	# Strongly connected components of %$next (Tarjan), the longest first.
	sub circles {
		my ($next) = @_;
		my (%at, %low, %on, @stack, @found);
		my $visit;
		$visit = sub {
			my ($v) = @_;
			$at{$v} = $low{$v} = keys %at;
			push(@stack, $v);
			$on{$v} = 1;
			for my $w (sort keys %{$next->{$v}}) {
				if (!exists $at{$w}) {
					$visit->($w);
					$low{$v} = $low{$w} if $low{$w} < $low{$v};
				} elsif ($on{$w} && $at{$w} < $low{$v}) {
					$low{$v} = $at{$w};
				}
			}
			return if $low{$v} != $at{$v};
			my @c;
			do {
				push(@c, pop(@stack));
				delete $on{$c[-1]};
			} until $c[-1] eq $v;
			push(@found, [sort @c]) if @c > 1;
		};
		exists $at{$_} || $visit->($_) for sort keys %$next;
		return sort { @$b <=> @$a || "@$a" cmp "@$b" } @found;
	}

	my (%rooms, %inside);
	for my $file (keys %uses) {
		for my $other (keys %{$uses{$file}}) {
			my ($a, $b) = (room($file), room($other));
			if ($a eq $b) { $inside{$file}{$other} = 1; }
			else { $rooms{$a}{$b} = 1; }
		}
	}
	wrong("circle of ", scalar(@$_), " rooms: @$_") for circles(\%rooms);

	my %length = $known =~ /(\S+) +(\d+)/g;
	for my $c (circles(\%inside)) {
		my $room = room($c->[0]);
		my $names = join(" ", map { m{([^/]*)$} } @$c);
		my $text = "circle of " . @$c . " files in $room: $names";
		my $may = delete($length{$room}) // 0;
		if (@$c <= 6 || @$c == $may) {
			print $text, @$c == $may ? " (known)" : "", "\n";
		} else {
			wrong($text, @$c < $may ? ": shorter than is known" : "");
		}
	}
	wrong("no such circle, but known: $_") for sort keys %length;

	my $objects = grep { defined } values %object;
	print "$objects objects, $edges uses, $wrong wrong\n";
	exit($wrong || !$edges ? 1 : 0);
' "$known" "$lab" "${@:3}"
