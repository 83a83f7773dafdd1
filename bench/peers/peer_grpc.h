/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What peer_grpc and peer_grpc_stream share: messages of gRPC that are bytes
 * and nothing else, and completion queues that are waited for, or polled.
 */
#ifndef BENCH_PEER_GRPC_H
#define BENCH_PEER_GRPC_H

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <grpcpp/grpcpp.h>

#include "bench/load.h"

struct peer {
	struct load load;
	std::string address;
};

[[noreturn]] inline void fail(const char *what, const std::string &why)
{
	std::fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name,
		     what, why.c_str());
	std::exit(1);
}

/* Makes a message of @data without a copy: the bytes are ours, and stay as they
 * are until there is an answer. */
inline grpc::ByteBuffer message(unsigned char *data, size_t size)
{
	grpc::Slice slice(data, size, [](void *) {});

	return grpc::ByteBuffer(&slice, 1);
}

/* Returns the bytes in one piece. A large message may be in several, and is
 * copied then. */
inline grpc::Slice bytes_of(const grpc::ByteBuffer &buffer)
{
	grpc::Slice slice;

	if (!buffer.TrySingleSlice(&slice).ok() &&
	    !buffer.DumpToSingleSlice(&slice).ok())
		fail("message", "no bytes");
	return slice;
}

/* Returns the next tag, of something that went well; with --poll looks for it
 * again and again, otherwise waits. */
inline void *next_tag(const struct load *l, grpc::CompletionQueue *cq)
{
	void *tag;
	bool ok = false;

	if (l->block) {
		if (!cq->Next(&tag, &ok))
			fail("completion queue", "shut down");
	} else {
		grpc::CompletionQueue::NextStatus status;

		do
			status = cq->AsyncNext(
				&tag, &ok, gpr_inf_past(GPR_CLOCK_MONOTONIC));
		while (status == grpc::CompletionQueue::TIMEOUT);
		if (status != grpc::CompletionQueue::GOT_EVENT)
			fail("completion queue", "shut down");
	}
	if (!ok)
		fail("call, or stream", "broken");
	return tag;
}

/* Reads the command line, chooses an address, and forks server(@p, ready).
 * Returns when that is ready. */
inline void peer_begin(struct peer *p, int argc, char **argv,
		       void (*server)(void *arg, int ready))
{
	load_args(&p->load, argc, argv);
	p->address = DUO_SERVER ":" + std::to_string(duo_free_port());
	load_fork(&p->load, server, p);
}

#endif
