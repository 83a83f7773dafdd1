# SPDX-License-Identifier: BSD-3-Clause
# Where to build, and how: shared by ./demo and ./check. For sourcing.
#
#	SRC	the tree that is built: this one, or a copy when we may not write
#		to it
#	BUILD	$ULNET_BUILD or build/ in SRC; one folder in it per configuration
#	SCRATCH	what to remove at the end, or nothing

JOBS=$(nproc)
SCRATCH=
CONFIG_CACHE=

# May we write where autoreconf and out-of-tree builds do?
tree_usable() {
	local f

	for f in "$1" "$1"/m4 "$1"/build-aux "$1"/build-aux/* "$1"/configure \
		"$1"/autom4te.cache "$1"/autom4te.cache/* "$1"/build \
		"$1"/build/*; do
		[ ! -e "$f" ] || [ -w "$f" ] || return 1
	done
}

# tree_prepare TOP: sets SRC, BUILD and SCRATCH, and runs autoreconf if need be.
tree_prepare() {
	local top=$1

	# make in BUILD would take the products of a build in TOP for its own.
	if [ -e "$top/config.status" ]; then
		echo "$top is configured in place: make distclean first" >&2
		return 1
	fi
	SRC=$top
	if ! tree_usable "$top"; then
		SCRATCH=$(mktemp -d "${TMPDIR:-/tmp}/ulnet.XXXXXX")
		SRC=$SCRATCH/ulnet
		mkdir "$SRC"
		tar -C "$top" --exclude=./.git --exclude=./build \
			--exclude=./autom4te.cache -cf - . |
			tar -C "$SRC" --no-same-owner -xf -
		chmod -R u+w "$SRC"
		echo "no write access to $top: using a copy, $SRC"
	fi
	BUILD=${ULNET_BUILD:-$SRC/build}
	mkdir -p "$BUILD" || return 1
	BUILD=$(cd "$BUILD" && pwd)
	tree_ccache
	tree_autogen
}

# What has been compiled in one build is not compiled again in another one, where
# there is ccache: in Debian, a folder of compilers that call it. Paths are
# relative, so that it does not matter where a tree and its build are.
tree_ccache() {
	local compilers=/usr/lib/ccache

	[ -x "$compilers/gcc" ] || return 0
	export PATH=$compilers:$PATH CCACHE_BASEDIR=$SRC CCACHE_NOHASHDIR=1
	export CCACHE_DIR=${CCACHE_DIR:-$BUILD/ccache} CCACHE_DEPEND=1
	export CCACHE_MAXSIZE=${CCACHE_MAXSIZE:-1G}
}

# Runs autoreconf unless its products are newer than their sources.
tree_autogen() {
	[ ! -e "$SRC/configure" ] || [ ! -e "$SRC/Makefile.in" ] ||
		[ -n "$(cd "$SRC" && find configure.ac Makefile.am m4/ulnet* \
			$(sed -n 's/^include //p' Makefile.am) \
			-newer Makefile.in)" ] || return 0
	if ! (cd "$SRC" && autoreconf -fi) >"$BUILD/autoreconf.log" 2>&1; then
		cat "$BUILD/autoreconf.log"
		return 1
	fi
	# Unchanged files keep their time: say that all are up to date.
	touch "$SRC"/aclocal.m4 && touch "$SRC"/configure "$SRC"/config.h.in &&
		touch "$SRC"/Makefile.in
}

# tree_configure NAME [ARGUMENT...]: configures $BUILD/NAME, from scratch if it was
# configured differently before. If CONFIG_CACHE, the name of a file, is set, what one
# configure finds out of a compiler is known to the next one.
tree_configure() {
	local dir=$BUILD/$1 now cache=()

	shift
	now="$SRC/configure $*"
	if [ -e "$dir/config.status" ] &&
		[ "$(cat "$dir/configured-as" 2>/dev/null)" = "$now" ]; then
		return 0
	fi
	rm -rf "$dir"
	mkdir -p "$dir"
	[ -z "$CONFIG_CACHE" ] || cache=(--cache-file="$CONFIG_CACHE")
	(cd "$dir" && "$SRC/configure" "${cache[@]}" "$@") || return 1
	echo "$now" >"$dir/configured-as"
}

# tree_make NAME [ARGUMENT...]: runs make in $BUILD/NAME.
tree_make() {
	local dir=$BUILD/$1

	shift
	make -C "$dir" -j"$JOBS" "$@"
}

tree_forget() {
	[ -n "$SCRATCH" ] || return 0
	chmod -R u+w "$SCRATCH"
	rm -rf "$SCRATCH"
}
