# Programs for users to read. They use nothing but what is installed. To add one:
#
#	noinst_PROGRAMS += %D%/NAME             (not in a build with fuzzers)
#	%C%_NAME_LINK = $(HERE_LINK)
#	%C%_NAME_LDADD = $(libulnet)
if !WITH_FUZZERS
noinst_PROGRAMS += %D%/crash %D%/demo %D%/depot %D%/doorman \
	%D%/context %D%/epoll %D%/lines %D%/names %D%/several
endif
# libulnetlab in the place of libulnet, and so in front of libulrpc, which names that.
%C%_context_LINK = $(HERE_LINK)
%C%_context_LDADD = $(libulrpc)
%C%_crash_LINK = $(HERE_LINK)
%C%_crash_LDADD = $(libulnetlab) $(libulrpc)
%C%_demo_LINK = $(HERE_LINK)
%C%_demo_LDADD = $(libulnetlab)
%C%_depot_LINK = $(HERE_LINK)
%C%_depot_LDADD = $(libulnetctl)
%C%_doorman_LINK = $(HERE_LINK)
%C%_doorman_LDADD = $(libulrpc)
%C%_epoll_LINK = $(HERE_LINK)
%C%_epoll_LDADD = $(libulnet)
%C%_lines_LINK = $(HERE_LINK)
%C%_lines_LDADD = $(libulrpc)
%C%_names_LINK = $(HERE_LINK)
%C%_names_LDADD = $(libulnetetcd) $(libulrpc)
%C%_several_LINK = $(HERE_LINK)
%C%_several_LDADD = $(libulrpc)

EXTRA_DIST += %D%/demo_lib.sh %D%/demo_tcp.sh %D%/demo_rpc.sh
EXTRA_DIST += %D%/demo_survive.sh %D%/demo_names.sh
EXTRA_DIST += %D%/demo_shm.sh
EXTRA_DIST += %D%/demo_rails.sh %D%/demo_routes.sh
EXTRA_DIST += %D%/demo_lst.sh %D%/demo_o2ibcalc.sh
EXTRA_DIST += %D%/demo_security.sh %D%/tap.pl

# A service of one's own; ulrpc_tutorial(7) shows these files, context.c, lines.c,
# names.c and several.c.
# ./check builds it from the page, with nothing but what is installed.
EXTRA_DIST += %D%/tally/Makefile %D%/tally/tally.proto %D%/tally/node.h
EXTRA_DIST += %D%/tally/server.c %D%/tally/client.c

# A durable service: it remembers what it has executed when it is started again.
# demo_survive.sh shows it, tests/install/ledger.sh tests it. Built with nothing but
# what is installed.
EXTRA_DIST += %D%/ledger/Makefile %D%/ledger/ledger.proto %D%/ledger/node.h
EXTRA_DIST += %D%/ledger/server.c %D%/ledger/client.c

# Objects on several servers, the work of a small project: bulk, statuses, sets of
# servers, an orderly end. tests/tools/store.sh runs it.
if WITH_PROTOC
if !WITH_FUZZERS
noinst_PROGRAMS += %D%/store/server %D%/store/client
endif
%C%_store_server_SOURCES = %D%/store/server.c %D%/store/node.h
nodist_%C%_store_server_SOURCES = %D%/store/store.pb-c.c
%C%_store_server_CPPFLAGS = $(AM_CPPFLAGS) -I%D%/store
%C%_store_server_LINK = $(HERE_LINK)
%C%_store_server_LDADD = $(libulrpc) $(PROTOBUF_C_LIBS)
%C%_store_client_SOURCES = %D%/store/client.c %D%/store/node.h
nodist_%C%_store_client_SOURCES = %D%/store/store.pb-c.c
%C%_store_client_CPPFLAGS = $(AM_CPPFLAGS) -I%D%/store
%C%_store_client_LINK = $(HERE_LINK)
%C%_store_client_LDADD = $(libulrpc) $(PROTOBUF_C_LIBS)
$(%C%_store_server_OBJECTS) $(%C%_store_client_OBJECTS): \
	| $(protos_made) %D%/store/store.ulrpc.h
protos_made += %D%/store/store.pb-c.h %D%/store/store.pb-c.c
ulrpc_headers_made += %D%/store/store.ulrpc.h
endif
EXTRA_DIST += %D%/store/Makefile %D%/store/store.proto %D%/store/node.h
EXTRA_DIST += %D%/store/server.c %D%/store/client.c
