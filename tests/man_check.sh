#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Every public function has a page, which shows it as its header does; every page is
# listed in man/module.mk (and is installed therefore), every alias leads somewhere;
# what the code has tables of (counters, settings, tunables, fields) is explained; and
# mandoc has nothing to say.
set -uo pipefail
cd "${srcdir:-.}" || exit 1

bad=0
complain() {
	echo "$*"
	bad=1
}

functions=$(bash scripts/public_functions.sh include/ulnet/*.h) ||
	complain "public headers cannot be read"
for name in $(cut -d' ' -f2 <<<"$functions"); do
	[ -e "man/man3/$name.3" ] || complain "$name: no page man/man3/$name.3"
done

listed=$(grep -v '^#' man/module.mk | grep -oE '%D%/[^ ]+\.[1-8]' |
	sed 's,%D%,man,')
for page in $listed; do
	[ -e "$page" ] || complain "$page: in man/module.mk only"
done
pages=$(find man -name '*.[1-8]' | LC_ALL=C sort)
for page in $pages; do
	grep -qxF "$page" <<<"$listed" ||
		complain "$page: not in man/module.mk"
	if target=$(sed -n '1s/^\.so //p' "$page") && [ -n "$target" ]; then
		[ -e "man/$target" ] || complain "$page: no page $target"
	fi
done

# The counters, of LNet and of RPC, and the settings of nodes are explained.
while read -r list page expression; do
	names=$(sed -nE "s/$expression/\\2/p" "$list")
	[ -n "$names" ] || complain "$list cannot be read"
	for name in $names; do
		grep -qxF ".It Va $name" "man/man3/$page.3" ||
			complain "man/man3/$page.3: no $name"
	done
done <<-'END'
	lnet/core/stat.def lnet_stats ^STAT(_NOW)?\(([a-z_]+),.*
	rpc/stats/stat.def ulrpc_stats ^STAT(_NOW)?\(([a-z_]+),.*
	lnet/core/setting.c lnet_settings ^\t(\{) "([a-z_]+)",.*
END

# The tunables of LNDs are there with their defaults and bounds, and no others.
for lnd in o2iblnd shmlnd socklnd; do
	tunables=$(perl -0ne 'while (/^TUNABLE\((\w+), "(\w*)", (-?\d+), (\d+), (-?\d+),/gm) {
			my ($name, $unit, $min, $max, $def) = ($1, $2, $3, $4, $5);
			s/^-/\\-/ for $min, $def;
			print ".It Va $name No ($def", $unit ? " $unit" : "",
				"; $min to $max)\n";
		}' lnd/$lnd/tunable.def)
	[ -n "$tunables" ] || complain "lnd/$lnd/tunable.def cannot be read"
	said=$(diff <(LC_ALL=C sort <<<"$tunables") \
		<(grep '^\.It Va [a-z_]* No (' man/man7/$lnd.7 | LC_ALL=C sort)) ||
		complain "tunable.def, and man/man7/$lnd.7: $said"
done

# The requests of the table are those of their page.
requests=$(sed -n '/^static const struct command {/,/^};/p' config/request/request.c |
	perl -ne 'print "$1\n" if /^\t\{ "([^"]+)",/' | LC_ALL=C sort)
[ -n "$requests" ] || complain "config/request/request.c cannot be read"
said=$(diff <(echo "$requests") <(sed -n '/^\.Ss Requests/,/^\.Ss Answers/p' \
	man/man7/lnet_control.7 | sed -n 's/^\.It Ic //p' | sed 's/ , /\n/g' |
	LC_ALL=C sort)) ||
	complain "config/request/request.c, and man/man7/lnet_control.7: $said"

# The rules of o2ib's tunables.
while read -r rule; do
	grep -qxF ".It Li $rule" man/man1/o2ibcalc.1 ||
		complain "man/man1/o2ibcalc.1: no rule $rule"
done < <(sed -n 's/^RULE([A-Z0-9_]*, "\([^"]*\)".*/\1/p' \
	lnd/o2iblnd/calc_rule.def)

# Every field of a structure of the API is explained.
fields() { # HEADER STRUCTURE
	sed -n "/^struct $2 {/,/^};/p" "$1" | perl -0pe '
		s{/\*.*?\*/}{}gs; s{^struct[^\n]*\n}{}; s{\}.*}{}s;
		s{\(\*(\w+)\)\([^)]*\)}{$1}g; s{\[.*?\]}{}g' | grep -oE '\w+ *(,|;)' |
		tr -d ' ,;'
}
while read -r header structure page; do
	names=$(fields "include/ulnet/$header" "$structure")
	[ -n "$names" ] || complain "struct $structure cannot be read"
	for name in $names; do
		grep -qE "^\.It .*\b$name\b" "man/man${page##*.}/$page" ||
			complain "man/man${page##*.}/$page: no $name"
	done
done <<-END
	context.h ulrpc_details ulrpc_context_new.3
	context.h ulrpc_metadata ulrpc_context_new.3
	control.h ulnet_control_command lnet_control_add.3
	control.h ulnet_control_conf lnet_control_start.3
	intercept.h ulrpc_call_end ulrpc_interceptors.7
	intercept.h ulrpc_call_start ulrpc_interceptors.7
	intercept.h ulrpc_request_end ulrpc_interceptors.7
	intercept.h ulrpc_request_start ulrpc_interceptors.7
	lnet.h ulnet_conf lnet_open.3
	lnet.h ulnet_event lnet_events.7
	lnet.h ulnet_md LNetMDAttach.3
	lnet.h ulnet_ni_conf lnet_ni_add.3
	lnet.h ulnet_ni_info lnet_ni_add.3
	lnet.h ulnet_peer_info lnet_ni_add.3
	lnet.h ulnet_ping_info lnet_ping.3
	lnet.h ulnet_setting lnet_settings.3
	lnet.h ulnet_tunable_info lnet_tunables.3
	o2ib.h ulnet_o2ib_attempt lnet_o2ib_calculate.3
	o2ib.h ulnet_o2ib_conf lnet_o2ib_calculate.3
	o2ib.h ulnet_o2ib_conn lnet_o2ib_calculate.3
	o2ib.h ulnet_o2ib_node lnet_o2ib_calculate.3
	o2ib.h ulnet_o2ib_note lnet_o2ib_calculate.3
	o2ib.h ulnet_o2ib_notes lnet_o2ib_calculate.3
	o2ib.h ulnet_o2ib_pair lnet_o2ib_calculate.3
	o2ib.h ulnet_o2ib_resources lnet_o2ib_calculate.3
	o2ib.h ulnet_o2ib_result lnet_o2ib_calculate.3
	o2ib.h ulnet_o2ib_rule lnet_o2ib_calculate.3
	path.h ulnet_path lnet_path_explain.3
	path.h ulnet_path_candidate lnet_path_explain.3
	replicas.h ulrpc_replicas_call_conf ulrpc_replicas_call.3
	replicas.h ulrpc_replicas_conf ulrpc_replicas_open.3
	replicas.h ulrpc_replicas_outcome ulrpc_replicas_call.3
	rpc.h ulrpc_bulk_conf ulrpc_bulk_new.3
	rpc.h ulrpc_call_conf ulrpc_call.3
	rpc.h ulrpc_client_conf ulrpc_client_open.3
	rpc.h ulrpc_conf ulrpc_open.3
	rpc.h ulrpc_outcome ulrpc_outcome.3
	rpc.h ulrpc_result ulrpc_set_new.3
	service.h ulrpc_bulk_info ulrpc_bulk_get.3
	service.h ulrpc_method_conf ulrpc_service_start.3
	service.h ulrpc_request_info ulrpc_reply.3
	service.h ulrpc_service_conf ulrpc_service_start.3
	service.h ulrpc_service_info ulrpc_services.3
	sim.h ulnet_sim_link lnet_sim_link_set.3
	sim.h ulnet_sim_stats lnet_sim_check.3
	spans.h ulrpc_spans_conf ulrpc_spans_start.3
	spans.h ulrpc_spans_stats ulrpc_spans_start.3
	store.h ulrpc_store_conf ulrpc_store_open.3
	store.h ulrpc_store_info ulrpc_store_read.3
	stream.h ulrpc_stream_conf ulrpc_stream_open.3
	stream.h ulrpc_stream_events ulrpc_stream_open.3
	stream.h ulrpc_stream_info ulrpc_stream_serve.3
	stream.h ulrpc_stream_method ulrpc_stream_serve.3
	stream.h ulrpc_stream_outcome ulrpc_stream_send.3
	stream.h ulrpc_stream_service_conf ulrpc_stream_serve.3
	stream.h ulrpc_streams_conf ulrpc_stream_open.3
	stub.h ulrpc_method_options ulrpc_stub_new.3
END

# Every constant is in some page.
for name in $(perl -0777 -ne 's{/\*.*?\*/}{}gs; s/^#ifndef.*//gm;
	print "$1\n" while /^(?:\t|#define )((?:LNET|ULRPC)_[A-Z0-9_]+)\b/gm' \
	include/ulnet/*.h | grep -vE '_(COUNT|H)$'); do
	grep -rqw -- "$name" man || complain "$name: in no page"
done

# A function is in its page's synopsis as it is in its header.
declared() { # HEADER...
	perl -0777 -ne 's{/\*.*?\*/}{}gs; s/__attribute__\s*\(\(.*?\)\)+//gs;
		while (/(?:ULNET_EXPORT|static inline)\s+([^;{]*?\))\s*[;{]/g) {
			(my $said = $1) =~ s/\s+/ /g;
			$said =~ s/ ?([*(),]) ?/$1/g;
			print "$said\n";
		}' "$@" | LC_ALL=C sort
}
shown() { # PAGE...
	perl -ne 'next if !(/^\.Sh SYN/ .. /^\.Sh DES/);
		s/\s+$//;
		$type = $1 if /^\.Ft "?([^"]*)/;
		if (/^\.F([no]) (\w+)(.*)/) {
			($name, my $rest, $now) = ($2, $3, $1 eq "n");
			@args = $rest =~ /"([^"]*)"|(\S+)/g;
		} elsif (/^\.Fa (.*)/) {
			push @args, $1 =~ /"([^"]*)"|(\S+)/g;
		}
		next if !/^\.F[nc]\b/ || $type =~ /^typedef/;
		my $said = "$type $name(" . (join(",", grep { defined } @args) ||
			"void") . ")";
		$said =~ s/ ?([*(),]) ?/$1/g;
		print "$said\n";' "$@" | LC_ALL=C sort
}
said=$(diff <(declared include/ulnet/*.h) <(shown man/man3/*.3)) ||
	complain "headers (<) and synopses (>) differ: $said"

# Pages of ours that are referred to are there.
while read -r name section; do
	[ -e "man/man$section/$name.$section" ] ||
		complain "there is no $name($section), and a page says so"
done < <(grep -rhoE '^\.Xr ((lnet|LNet|ulrpc|ulnet|rpc|protoc-gen-)[^ ]*|socklnd|o2iblnd|shmlnd|o2ibcalc) [1-8]' \
	man | sed 's/^\.Xr //' | LC_ALL=C sort -u)

# How requests end; what is held ends as ok.
while read -r name; do
	grep -qE "^\.Ql $name\b" man/man3/ulrpc_stats.3 ||
		complain "man/man3/ulrpc_stats.3: no \"$name\""
done < <(sed -n '/^static const char \*request_end_name/,/^}/p' rpc/stats/stat.c |
	sed -nE 's/.*\[(WIRE|STAT)_[A-Z_]+\] = "([a-z ]+)",/\2/p' | grep -v '^held$')

# What readers cannot look up.
said=$(grep -rnE '\b[A-K][0-9]{1,2}\b|[Rr]equirements? [A-Z]|[Ss]pecification section' \
	man README.md) &&
	complain "numbers of requirements: $said"
said=$(grep -rnE '^\.S[hs]( .*)? (A[dnprt]|Em|In|No|Op|Pa|St|Sy|Ux|Va)( |$)' man) &&
	complain "a word of a title is a macro: $said"
said=$(grep -rLE '^\.(Os ulnet$|so )' man --include='*.[1-8]')
[ -z "$said" ] || complain "no \".Os ulnet\": $said"

# In 80 columns as man-db shows them, no table runs into the right margin, where groff
# puts each word on a line of its own.
if command -v groff >/dev/null; then
	for page in $(grep -l '^\.Bl -column' $pages); do
		said=$(groff -mandoc -Tascii -rLL=78n "$page" 2>&1 | col -bx |
			awk 'match($0, /[^ ]/) > 60') ||
			complain "$page: groff fails"
		[ -z "$said" ] || complain "$page: a table is too wide: $said"
	done
fi

if ! command -v mandoc >/dev/null; then
	[ $bad = 0 ] || exit 1
	echo "mandoc is not installed: pages not checked"
	exit 77
fi
for page in $pages; do
	! head -n 1 "$page" | grep -q '^\.so ' || continue
	said=$(mandoc -T lint -W warning "$page" 2>&1)
	[ -z "$said" ] || complain "$said"
done

[ $bad != 0 ] || echo "$(wc -w <<<"$functions" | awk '{ print $1 / 2 }')" \
	"functions, $(wc -w <<<"$pages") pages"
exit $bad
