/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of methods that stream: messages from JSON objects that come one after
 * another, and messages of the service as JSON, at the same time.
 */
#ifndef TOOLS_ULRPC_STREAM_H
#define TOOLS_ULRPC_STREAM_H

#include <ulnet/stream.h>

#include "message.h"

/* Borrowed until stream_call() returns. */
struct stream_call {
	struct ulrpc *rpc;
	struct ulrpc_client_conf client;
	const char *method;
	const struct schema_type *input, *output;
	bool client_streaming;
	/* The JSON objects: if @fd is not -1, read from there, as they come;
	 * otherwise @text. Without client_streaming, one. */
	const char *text;
	int fd;
	int signals; /* signals_open(): SIGINT and SIGTERM cancel the stream */
	uint64_t deadline; /* us; ULRPC_NEVER: none */
	uint64_t patience; /* us: for how long a server may be out of reach */
	bool defaults;	   /* message_print() */
	FILE *err;	   /* what is wrong with messages, line by line */
};

/* Returns 0: the stream is over, and *@outcome says how; -EINVAL or -EPROTO,
 * after a message on call->err: what was to be sent, or has come, is no
 * message; another -errno. */
int stream_call(const struct stream_call *call,
		struct ulrpc_stream_outcome *outcome);

#endif
