# SPDX-License-Identifier: BSD-3-Clause
# Builds with a profile of calls (--enable-pgo) and link-time optimisation together;
# checks that a call takes fewer instructions for it. With --long also by clang. For
# sourcing by ./check.
stage pgo touched '^. (configure|m4/|Makefile\.am|bench/train)'

pgo_build() { # NAME CC [ARGUMENT...]
	CONFIG_CACHE=$BUILD/config.cache.$2 \
		tree_configure "$1" CC="$2" --enable-pgo --enable-werror "${@:3}" &&
		tree_make "$1" bench/train libulnet.la libulrpc.la
}

# per_call BUILD DEPTH: the difference between two runs of which one makes 2,000 calls
# more. Names of functions, by which bench/budget.sh counts, may be others after
# link-time optimisation.
per_call() {
	local n

	for n in 2000 4000; do
		valgrind --tool=callgrind --callgrind-out-file=/dev/null \
			"$BUILD/$1/bench/train" "$2" $n 2>&1 || return 1
	done | awk '
		/Collected :/ { was = now; now = $NF; seen++ }
		END { printf "%.0f\n", (now - was) / 2000; exit seen != 2 }'
}

profile_pays() {
	local depth plain now

	for depth in 1 64; do
		plain=$(per_call release $depth) && now=$(per_call pgo $depth) || return 1
		echo "$depth under way: $now instructions for a call, $plain without a profile"
		[ "$now" -lt "$plain" ] || return 1
	done
}

stage_pgo() {
	step "build with --enable-pgo and --enable-lto" pgo_build pgo gcc --enable-lto ||
		return 0
	! release_build bench/train ||
		step "calls take fewer instructions" profile_pays || true
	[ $long = yes ] || return 0
	! step "build with --enable-pgo by clang" pgo_build pgo-clang clang ||
		step "calls with that" "$BUILD/pgo-clang/bench/train" 64 6400 || true
}
