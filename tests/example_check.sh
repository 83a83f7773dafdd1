#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The C of pages compiles: in section 3 all displays under EXAMPLES, in section 7 the
# complete programs. What begins with #include is compiled as it is. Anything else is
# the body of a function, or functions if a line is "{", with the headers in front,
# a few names for what every reader has (node, rpc, client, buf, rc...), and what the
# comments say that stand before it in the page:
#
#	.\" given: DECLARATIONS		that it takes for granted
#	.\" not C			it is something else
set -uo pipefail
src=${srcdir:-.}
command -v "${CC:=cc}" >/dev/null || {
	echo "no compiler: $CC"
	exit 77
}
dir=$(mktemp -d "${TMPDIR:-/tmp}/ulnet-examples.XXXXXX")
trap 'rm -rf "$dir"' EXIT

# Writes each example of a page to DIR/PAGE.NUMBER.c.
extract() { # PAGE
	perl -e '
		my ($page, $dir, $n) = (@ARGV, 0);
		(my $name = $page) =~ s{.*/}{};
		open(my $f, "<", $page) or die "$page: $!\n";
		my ($examples, $given, $skip, $text) = (0, "", 0, undef);
		while (<$f>) {
			if (defined $text) {
				if (/^\.Ed/) {
					emit($text) if !$skip;
					($text, $given, $skip) = (undef, "", 0);
					next;
				}
				s/\\&//g; s/\\-/-/g; s/\\e/\\/g;
				$text .= $_;
			} elsif (/^\.Sh (.*)/) {
				$examples = $1 eq "EXAMPLES";
			} elsif (/^\.\\" given: (.*)/) {
				$given .= "$1\n";
			} elsif (/^\.\\" not C/) {
				$skip = 1;
			} elsif ($examples && /^\.Bd -literal/) {
				$text = "";
			}
		}
		sub emit {
			my ($text) = @_;
			my $whole = $text =~ m{^(/\*.*?\*/\s*)?#include}s;
			return if $page =~ /\.7$/ && !$whole;
			open(my $out, ">", "$dir/$name." . ++$n . ".c") or die;
			print $out $text if $whole;
			return if $whole;
			print $out "#include <errno.h>\n#include <inttypes.h>\n",
				"#include <stdio.h>\n#include <stdlib.h>\n",
				"#include <string.h>\n",
				map("#include <ulnet/$_.h>\n", qw(context control fault keys lnet loop path
					policy replicas route service sim store stream stub)),
				"extern struct lnet *node;\n",
				"extern struct lnet_control *control;\n",
				"extern struct lnet_sim *sim;\n",
				"extern struct ulrpc *rpc;\n",
				"extern struct ulrpc_client *client;\n",
				"extern char buf[4 << 20];\n",
				"extern size_t len;\n", "extern int rc;\n",
				$given;
			print $out $text =~ /^\{$/m ? $text :
				"int example(void);\nint example(void)\n{\n" .
				"$text\nreturn 0;\n}\n";
		}' "$1" "$dir"
}

for page in "$src"/man/man[37]/*.[37]; do
	extract "$page" || exit 1
done
found=0 bad=0
for file in "$dir"/*.c; do
	[ -e "$file" ] || break
	found=$((found + 1))
	"$CC" -std=gnu11 -D_GNU_SOURCE -fsyntax-only -Wall -Wextra -Werror \
		-Wno-return-type -Wno-unused -Wno-unused-parameter \
		-I include -I "$src/include" "$file" >"$dir/said" 2>&1 || {
		bad=$((bad + 1))
		sed "s,$dir/,," "$dir/said"
	}
done
echo "$found examples, $bad of them do not compile"
[ $bad = 0 ] && [ $found -ge "${EXAMPLES_MIN:-30}" ]
