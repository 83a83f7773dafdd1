/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The gate: limits the rates of requests in front of the queues of a service,
 * by rules. The first rule that matches a request applies; requests that no
 * rule matches pass. A rule has token buckets, which fill with its rate up to
 * its depth. A request that finds no token waits in the gate.
 *
 * The text of rules, which ';' separates:
 *
 *	rules := rule { ';' rule }
 *	rule  := item { item }, one of which is rate
 *	item  := 'nid=' nidlist		of the client (nid.h)
 *	       | 'pid=' number		of the client's process
 *	       | 'method=' name		of the service
 *	       | 'rate=' number		requests a second: 1 to 1000000000
 *	       | 'depth=' number	of each bucket; default: 3
 *	       | 'per=' ( 'host' | 'client' | 'rule' )
 *
 * A rule has a bucket for each host (a NID; the default), for each client, or
 * one for all requests. Hosts that share the bucket of a rule, and clients that
 * share the bucket of a host, take turns. Within one client, requests of a
 * higher priority go first, up to `ratio` in a row while lower ones wait.
 *
 * The gate has no timer: gate_next() lets through the requests that are due,
 * each as of the time at which it was due, and says when the next one will be
 * due.
 *
 * Thread: owner.
 */
#ifndef RPC_GATE_H
#define RPC_GATE_H

#include "rpc/server/queue/sched.h"

struct gate_rules;
struct gate;

/* Parses @text. Returns 0, with rules that the caller frees; -EINVAL, with
 * *@err filled unless @err is NULL; or -ENOMEM. */
int gate_rules_parse(const char *text, struct gate_rules **rules_p,
		     struct ulnet_text_error *err) must_check;
/* Has the service a method with this number? @arg: as given with it. */
typedef bool (*gate_method_fn)(const void *arg, uint32_t method);
/* Checks that all methods that @rules name exist. @text: what the rules were
 * parsed from, for the complaint. Returns 0, or -EINVAL, with *@err filled
 * unless @err is NULL. */
int gate_rules_check(const struct gate_rules *rules, const char *text,
		     gate_method_fn has, const void *arg,
		     struct ulnet_text_error *err) must_check;
void gate_rules_free(struct gate_rules *rules);

/* Makes an empty gate. @rules: borrowed as long as the gate exists. @ratio:
 * above. Returns NULL if there is no memory. */
struct gate *gate_new(const struct gate_rules *rules, unsigned int ratio);
/* @g has to be empty. */
void gate_free(struct gate *g);
/* Returns true if @item has to wait: it is in the gate until gate_next()
 * returns it, or gate_remove() is called. Returns false if @item may pass: its
 * token has been taken. @now: ns. */
bool gate_hold(struct gate *g, struct sched_item *item, uint64_t now);
/* Returns the next item that may pass by @now (ns), with item->released set to
 * the time at which it was due. NULL: no item may pass now; *@again is lowered
 * to the time (ns) at which the next one may, if there is one. */
struct sched_item *gate_next(struct gate *g, uint64_t now, uint64_t *again);
/* Returns an item of the gate, which is not empty; the item stays there. */
struct sched_item *gate_any(const struct gate *g);
/* Takes @item, which waits in the gate, out of it. */
void gate_remove(struct gate *g, struct sched_item *item);
/* Returns ns for which @item would wait in the gate, at most, if it came now.
 */
uint64_t gate_wait(const struct gate *g, const struct sched_item *item,
		   uint64_t now);
bool gate_is_empty(const struct gate *g);

#endif
