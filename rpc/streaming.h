/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What calls and requests know of streams, which are opened by calls: that some
 * do that. The user of such a call has given the body without its first bytes,
 * the head (rpc/stream/frame.h).
 */
#ifndef RPC_STREAMING_H
#define RPC_STREAMING_H

#include "ulnet/service.h"

/* All calls of @client open streams, which calls of other clients carry: both
 * are of @streams, which is only compared. Called before the first call. */
void client_opens_streams(struct ulrpc_client *client, uint32_t head,
			  const void *streams);
void client_carries_streams(struct ulrpc_client *client, const void *streams);

/* Returns the NID of the server of @conf, which is valid; LNET_NID_ANY: it has
 * a name. */
struct ulnet_nid client_conf_server(const struct ulrpc_client_conf *conf);

/*
 * For clients whose targets are names. In the callback of a call:
 * client_server() returns the NID of the server that has answered; and
 * client_open_beside() opens another client at that server, which stays there,
 * on the same CPT. @conf has no nids and no target. client_pin(): the client
 * stays at its server, whatever happens, until client_unpin().
 * client_is_astray(): the name does not stand for that server any more. Owner.
 */
struct ulnet_nid client_server(const struct ulrpc_client *client);
int client_open_beside(const struct ulrpc_client *client,
		       const struct ulrpc_client_conf *conf,
		       struct ulrpc_client **client_p);
void client_pin(struct ulrpc_client *client);
void client_unpin(struct ulrpc_client *client);
bool client_is_astray(const struct ulrpc_client *client);

/*
 * What the interceptors of the call that has opened a stream know. In the
 * callback of that call, which has ended well, the stream may take it, and owes
 * client_seen_put(); before that, client_seen_over() calls them for the end of
 * the stream. NULL: there are none. Owner.
 */
struct interception;
struct interception *client_seen_take(struct ulrpc_client *client);
void client_seen_over(struct interception *x, const struct ulrpc_outcome *o,
		      size_t received);
void client_seen_put(struct interception *x);

/* The same for the request that opens a stream, before it is replied to. */
struct request_seen;
struct ulrpc_request_end;
struct request_seen *request_seen_take(struct ulrpc_request *r);
/* Fills in service, method and stream of @end, unless they are set. */
void request_seen_over(struct request_seen *seen,
		       struct ulrpc_request_end *end);
void request_seen_put(struct request_seen *seen);

/* Returns the annex that has come with @r, which was checked
 * (rpc/context/annex.h), of *@length_p bytes; NULL: none, and 0 bytes. */
const void *request_metadata_of(const struct ulrpc_request *r,
				size_t *length_p);

/* Returns the trace of @r, of TRACE_LENGTH bytes, as what is made for it has
 * it; NULL: none. */
const uint8_t *request_trace_of(const struct ulrpc_request *r);

/* As ulrpc_service_start(). The last @nstreams methods open streams. */
int service_start_streams(struct ulrpc *rpc,
			  const struct ulrpc_service_conf *conf,
			  unsigned int nstreams, uint32_t head,
			  struct ulrpc_service **service_p);

#endif
