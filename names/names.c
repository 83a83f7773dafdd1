/* SPDX-License-Identifier: BSD-3-Clause */
#include "names/names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "names/resolver.h"

/* us: how long one lnet_poll() lasts when names are closed */
#define CLOSE_POLL UINT64_C(100000)

/* A name, its answer, and its users. */
struct name_entry {
	struct names *names;
	struct list link; /* node in names.used or names.kept */
	struct hash_node by_text, by_feed; /* in names.used only */
	/* names this entry in lnet_name_answer(); 0: the answer is known, and
	 * nobody looks the name up */
	uint64_t feed;
	char *text;
	struct list users; /* of ulnet_name.link */
	/* threads in lnet_name_lookup_wait(): these are users, too */
	unsigned int lookups;
	struct answer *answer; /* the last answer; NULL: none yet */
	uint64_t good_until;   /* ns: when the answer's time to live ends */
	/* the scheme that looks the name up; NULL: the resolver does, or nobody
	 */
	const struct ulnet_name_scheme *scheme;
	void *priv;
	bool opened; /* was looking up begun? Then entry_close() ends it */
	/* was a refused port logged? */
	bool told_port;
};

struct ulnet_name {
	struct list link; /* node in name_entry.users */
	struct names *names;
	struct name_entry *entry;
	unsigned int cpt;
	ulnet_name_fn fn;
	void *arg;
	struct ulnet_work work;
	/* is @work posted? If so, it frees a user that is @closed */
	bool posted;
	bool closed;
};

/* ---- the names of a node ---- */

static void names_on_close(struct ulnet_layer *layer);

static struct names *names_of(struct lnet *node)
{
	struct ulnet_layer *layer = lnet_layer_find(node, names_on_close);

	return layer ? container_of(layer, struct names, layer) : NULL;
}

static void entry_free(struct name_entry *e)
{
	answer_put(e->answer);
	free(e->text);
	free(e);
}

static void kept_forget(struct names *names, unsigned int max)
{
	while (names->nkept > max) {
		names->nkept--;
		entry_free(list_pop(&names->kept, struct name_entry, link));
	}
}

static bool nothing_posted(struct names *names)
{
	bool nothing;

	pthread_mutex_lock(&names->lock);
	nothing = !names->posted;
	pthread_mutex_unlock(&names->lock);
	return nothing;
}

/* Waits until all works that were posted have run. Makes the node's turns,
 * unless another thread does. */
static void wait_for_posted(struct names *names)
{
	while (!nothing_posted(names)) {
		int rc = lnet_poll(names->node, CLOSE_POLL);

		if (rc != -EBUSY && rc != -EXDEV)
			continue;
		pthread_mutex_lock(&names->lock);
		if (names->posted)
			(void)lnet_cond_wait(&names->changed, &names->lock,
					     lnet_now(names->node, 0) +
						     CLOSE_POLL * 1000);
		pthread_mutex_unlock(&names->lock);
	}
}

static void names_free(struct names *names)
{
	kept_forget(names, 0);
	hash_fini(&names->by_text);
	hash_fini(&names->by_feed);
	lnet_cond_destroy(&names->changed);
	pthread_mutex_destroy(&names->lock);
	free(names);
}

/* Closes the names that their users have left open. */
static void close_used(struct names *names)
{
	while (!list_empty(&names->used)) {
		struct name_entry *e =
			list_first(&names->used, struct name_entry, link);
		struct ulnet_name *user;

		pthread_mutex_lock(&names->lock);
		user = list_first(&e->users, struct ulnet_name, link);
		pthread_mutex_unlock(&names->lock);
		lnet_name_close(user);
	}
}

/* Called when the node closes. Layers that use names were added later, and so
 * are gone. */
static void names_on_close(struct ulnet_layer *layer)
{
	struct names *names = container_of(layer, struct names, layer);

	pthread_mutex_lock(&names->lock);
	names->closed = true;
	pthread_mutex_unlock(&names->lock);
	close_used(names);
	resolver_stop(names->resolver);
	wait_for_posted(names);
	lnet_layer_del(names->node, layer);
	names_free(names);
}

int lnet_names_open(struct lnet *node)
{
	struct names *names;
	int rc;

	if (names_of(node))
		return 0;
	names = calloc(1, sizeof(*names));
	if (!names)
		return -ENOMEM;
	rc = lnet_cond_init(&names->changed);
	if (rc) {
		free(names);
		return rc;
	}
	pthread_mutex_init(&names->lock, NULL);
	names->node = node;
	hash_init(&names->by_text);
	hash_init(&names->by_feed);
	list_init(&names->used);
	list_init(&names->kept);
	list_init(&names->schemes);
	names->layer.close = names_on_close;
	lnet_layer_add(node, &names->layer);
	return 0;
}

/* ---- schemes ---- */

_Static_assert(sizeof(struct list) ==
		       sizeof((struct ulnet_name_scheme){ 0 }.opaque),
	       "room for a link");

static struct list *scheme_link(struct ulnet_name_scheme *scheme)
{
	return (void *)scheme->opaque;
}

/* Returns the scheme whose name is exactly @name; NULL: there is none. */
static struct ulnet_name_scheme *scheme_find(struct names *names,
					     const char *name)
{
	struct list *l;

	for (l = names->schemes.next; l != &names->schemes; l = l->next) {
		struct ulnet_name_scheme *s = container_of(
			(void *)l, struct ulnet_name_scheme, opaque);

		if (!strcmp(s->scheme, name))
			return s;
	}
	return NULL;
}

int lnet_name_scheme_add(struct lnet *node, struct ulnet_name_scheme *scheme)
{
	struct names *names = names_of(node);
	int rc = 0;

	if (!names)
		return -ENXIO;
	pthread_mutex_lock(&names->lock);
	if (scheme_find(names, scheme->scheme))
		rc = -EEXIST;
	else
		list_add_tail(&names->schemes, scheme_link(scheme));
	pthread_mutex_unlock(&names->lock);
	return rc;
}

/* ---- answers ---- */

static void user_post(struct ulnet_name *user)
{
	if (user->posted)
		return;
	user->posted = true;
	user->names->posted++;
	lnet_post(user->names->node, user->cpt, &user->work);
}

static void on_work(struct ulnet_work *work)
{
	struct ulnet_name *user = container_of(work, struct ulnet_name, work);
	struct names *names = user->names;
	struct answer *answer = NULL;

	pthread_mutex_lock(&names->lock);
	user->posted = false;
	if (!user->closed && user->entry->answer) {
		answer = user->entry->answer;
		answer->refs++;
	}
	pthread_mutex_unlock(&names->lock);
	if (answer)
		user->fn(user->arg, &answer->a); /* @fn may close @user */
	else if (user->closed)
		free(user);
	pthread_mutex_lock(&names->lock);
	answer_put(answer);
	names->posted--;
	lnet_cond_broadcast(&names->changed);
	pthread_mutex_unlock(&names->lock);
}

/* ---- ports: the LND is told at which ones nodes listen ---- */

/* Returns who says at which port a node listens: a look-up, or the program,
 * whose text is an address or NIDs. */
static enum ulnet_port_source source_of(const struct name_entry *e,
					const struct ulnet_address *a)
{
	if (e->feed)
		return LNET_PORT_FOUND;
	return a->port ? LNET_PORT_TEXT : LNET_PORT_GIVEN;
}

static void port_refused(struct name_entry *e, const struct ulnet_address *a,
			 int rc)
{
	char nid[LNET_NIDSTR_SIZE];

	if (e->told_port)
		return;
	e->told_port = true;
	log_warn("names",
		 "%s: %s at %s%.0u is left out: %s; further ones are not "
		 "logged",
		 e->text, lnet_nid_format(&a->nid, nid, sizeof(nid)),
		 a->port ? "port " : "this node's port", a->port,
		 rc == -EEXIST ? "it has another port" : strerror(-rc));
}

static bool answer_has(const struct answer *answer,
		       const struct ulnet_address *a)
{
	for (unsigned int i = 0; answer && i < answer->a.n; i++)
		if (lnet_nid_eq(&answer->addresses[i].nid, &a->nid) &&
		    answer->addresses[i].port == a->port)
			return true;
	return false;
}

static void ports_release(const struct name_entry *e,
			  const struct answer *answer)
{
	for (unsigned int i = 0; answer && i < answer->a.n; i++)
		lnet_peer_port_release(e->names->node,
				       &answer->addresses[i].nid,
				       source_of(e, &answer->addresses[i]));
}

/* Claims the ports of those addresses of @fresh that @before has, too (@same),
 * or has not (!@same). Leaves out addresses whose ports are refused, and
 * returns how many these are. */
static unsigned int ports_claim(struct name_entry *e, struct answer *fresh,
				const struct answer *before, bool same)
{
	unsigned int n = 0, all = fresh->a.n;

	for (unsigned int i = 0; i < all; i++) {
		struct ulnet_address *a = &fresh->addresses[i];
		int rc = 0;

		if (answer_has(before, a) == same)
			rc = lnet_peer_port_claim(e->names->node, &a->nid,
						  a->port, source_of(e, a));
		if (rc)
			port_refused(e, a, rc);
		else
			fresh->addresses[n++] = *a;
	}
	fresh->a.n = n;
	return all - n;
}

/* Claims the ports of @fresh, and releases those of @before (NULL: none). A
 * port that both have stays claimed all the time. */
static void answer_ports(struct name_entry *e, struct answer *fresh,
			 const struct answer *before)
{
	unsigned int refused = ports_claim(e, fresh, before, true);

	ports_release(e, before);
	refused += ports_claim(e, fresh, before, false);
	if (!refused || fresh->a.n || fresh->a.status)
		return;
	fresh->a.status = -EADDRINUSE;
	snprintf(fresh->a.why, sizeof(fresh->a.why),
		 "its servers have other ports than the name says");
}

/* ---- answers are taken ---- */

/* Makes @fresh the answer of @e, and tells the users if it is another one than
 * before. @ttl: ns. */
static void entry_answered(struct name_entry *e, struct answer *fresh,
			   uint64_t ttl)
{
	struct names *names = e->names;
	struct ulnet_name *user;

	e->good_until = lnet_now(names->node, 0) + ttl;
	if (e->answer && answer_eq(e->answer, fresh)) {
		answer_put(fresh);
		return;
	}
	answer_put(e->answer);
	e->answer = fresh;
	list_for_each_entry (user, &e->users, link)
		user_post(user);
	lnet_cond_broadcast(&names->changed);
}

static struct name_entry *find_feed(struct names *names, uint64_t feed)
{
	struct name_entry *e;

	hash_for_each_equal (e, &names->by_feed, hash_u64(feed, 0), by_feed)
		if (e->feed == feed)
			return e;
	return NULL;
}

/* Logs @a. A failure is only a warning if there are users with a callback:
 * others, which wait for the answer, get the reason themselves. */
static void log_answer(const struct name_entry *e,
		       const struct ulnet_name_answer *a)
{
	if (a->status)
		log_at(list_empty(&e->users) ? LOG_INFO : LOG_WARN, "names",
		       "%s: %s%s", e->text, a->why,
		       a->n ? "; the addresses known before are kept" : "");
	else
		log_info("names", "%s: %u address%s", e->text, a->n,
			 a->n == 1 ? "" : "es");
}

int lnet_name_answer(struct lnet *node, uint64_t feed,
		     const struct ulnet_name_answer *answer, uint64_t ttl)
{
	struct names *names = names_of(node);
	struct name_entry *e;
	struct answer *fresh;
	int rc = 0;

	if (!names)
		return 0;
	pthread_mutex_lock(&names->lock);
	e = find_feed(names, feed);
	if (e) {
		fresh = answer_new(answer, e->answer);
		rc = fresh ? 0 : -ENOMEM;
		if (fresh)
			answer_ports(e, fresh, e->answer);
		if (fresh && !(e->answer && answer_eq(e->answer, fresh)))
			log_answer(e, &fresh->a);
		if (fresh)
			entry_answered(e, fresh, ttl * 1000);
	}
	pthread_mutex_unlock(&names->lock);
	return rc;
}

/* ---- entries ---- */

static uint64_t text_hash(const struct names *names, const char *text)
{
	return hash_bytes(text, strlen(text), (uintptr_t)names);
}

/* Returns the name that is in use. */
static struct name_entry *find_used(struct names *names, const char *text)
{
	struct name_entry *e;

	hash_for_each_equal (e, &names->by_text, text_hash(names, text),
			     by_text)
		if (!strcmp(e->text, text))
			return e;
	return NULL;
}

static struct name_entry *find_kept(struct names *names, const char *text)
{
	struct name_entry *e;

	list_for_each_entry (e, &names->kept, link)
		if (!strcmp(e->text, text))
			return e;
	return NULL;
}

/* Adds @e, which has its feed, to the names in use. Returns 0 or -ENOMEM. */
static int used_add(struct names *names, struct name_entry *e)
{
	int rc = hash_add(&names->by_text, &e->by_text,
			  text_hash(names, e->text));

	if (rc)
		return rc;
	if (e->feed)
		rc = hash_add(&names->by_feed, &e->by_feed,
			      hash_u64(e->feed, 0));
	if (rc) {
		hash_del(&names->by_text, &e->by_text);
		return rc;
	}
	list_add_tail(&names->used, &e->link);
	names->nused++;
	return 0;
}

static void used_del(struct names *names, struct name_entry *e)
{
	hash_del(&names->by_text, &e->by_text);
	if (e->feed)
		hash_del(&names->by_feed, &e->by_feed);
	list_del(&e->link);
	names->nused--;
}

/* Takes the answer to @text that was kept, if its time to live has not ended,
 * and sets *@until_p to when it does (ns). NULL: there is none. */
static struct answer *take_kept(struct names *names, const char *text,
				uint64_t *until_p)
{
	struct name_entry *e = find_kept(names, text);
	struct answer *answer = NULL;

	if (!e)
		return NULL;
	if (e->good_until > lnet_now(names->node, 0)) {
		*until_p = e->good_until;
		answer = e->answer;
		answer->refs++;
	}
	list_del(&e->link);
	names->nkept--;
	entry_free(e);
	return answer;
}

/* Makes an entry, with the answer that was kept. Claims no ports. NULL: no
 * memory. */
static struct name_entry *entry_new(struct names *names, const char *text)
{
	struct name_entry *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->text = strdup(text);
	if (!e->text) {
		free(e);
		return NULL;
	}
	e->names = names;
	list_init(&e->users);
	e->answer = take_kept(names, text, &e->good_until);
	return e;
}

/* If *@name is an address, adds it to @found. Returns false if it is none. */
static bool host_known(struct lnet *node, const struct name_text *name,
		       struct address_list *found)
{
	uint32_t net = name->net == LNET_NET_ANY ? answer_net(node) : name->net;
	struct ulnet_address address = { .port = name->port };

	if (!target_address(name->what, net, &address.nid))
		return false;
	address_add(found, &address);
	return true;
}

/* Adds the addresses in @list to @found. Returns false if there is a name among
 * them. */
static bool list_known(struct lnet *node, const char *list,
		       struct address_list *found)
{
	struct name_text name;

	while (list)
		if (target_next(&list, &name, NULL) ||
		    !host_known(node, &name, found))
			return false;
	return true;
}

/* Returns the answer if it is in the text itself: NIDs, or addresses. Returns
 * NULL if *@name has to be looked up, or if there is no memory. */
static struct answer *answer_known(struct lnet *node,
				   const struct ulnet_target *target,
				   const struct name_text *name)
{
	struct address_list found = { 0 };
	struct ulnet_name_answer a = { .addresses = found.address };
	bool known = true;

	for (unsigned int i = 0; i < target->nnids; i++)
		address_add(&found,
			    &(struct ulnet_address){ .nid = target->nids[i] });
	if (!strcmp(name->scheme, "list"))
		known = list_known(node, name->what, &found);
	else if (!found.n)
		known = !strcmp(name->scheme, "host") &&
			host_known(node, name, &found);
	a.n = found.n;
	return known ? answer_new(&a, NULL) : NULL;
}

/* Starts the resolver, unless it was started. The caller holds the lock. */
static int names_resolver(struct names *names)
{
	if (names->resolver)
		return 0;
	return resolver_start(names->node, &names->resolver);
}

/* Claims the ports of an answer that was kept. If one is refused, drops the
 * answer. */
static void kept_claim(struct name_entry *e)
{
	struct answer *kept = e->answer;
	unsigned int n = 0;

	while (kept && n < kept->a.n &&
	       !lnet_peer_port_claim(e->names->node, &kept->addresses[n].nid,
				     kept->addresses[n].port, LNET_PORT_FOUND))
		n++;
	if (!kept || n == kept->a.n)
		return;
	while (n)
		lnet_peer_port_release(e->names->node,
				       &kept->addresses[--n].nid,
				       LNET_PORT_FOUND);
	answer_put(kept);
	e->answer = NULL;
	e->good_until = 0;
}

/* Answers *@name if that needs no look-up; else finds out who looks it up. The
 * caller holds the lock. */
static int entry_begin(struct name_entry *e, const struct ulnet_target *target,
		       const struct name_text *name)
{
	struct names *names = e->names;
	struct answer *known = answer_known(names->node, target, name);

	if (known) {
		answer_ports(e, known, NULL);
		entry_answered(e, known, 0);
		return 0;
	}
	if (!target->is_name)
		return -ENOMEM;
	e->feed = ++names->feeds;
	kept_claim(e);
	e->scheme = scheme_find(names, name->scheme);
	if (!e->scheme)
		e->scheme = scheme_find(names, "");
	if (e->scheme)
		return 0;
	if (!resolver_knows(name))
		return -EPROTONOSUPPORT;
	return names_resolver(names);
}

/* Returns the text that the scheme gets: what is behind "://"; the scheme ""
 * gets all. */
static const char *scheme_rest(const struct name_entry *e)
{
	const char *at = strstr(e->text, "://");

	return *e->scheme->scheme && at ? at + 3 : e->text;
}

/* Returns for how many ns what is known needs no look-up. */
static uint64_t entry_fresh(const struct name_entry *e)
{
	uint64_t now = lnet_now(e->names->node, 0);

	return e->good_until > now ? e->good_until - now : 0;
}

/* Begins to look the name up. The caller is a user of @e, and does not hold the
 * lock. */
static void entry_open(struct name_entry *e, const struct name_text *name)
{
	struct ulnet_name_answer failed = { 0 };

	if (!e->feed)
		return;
	if (e->scheme)
		failed.status =
			e->scheme->open(e->scheme->arg, e->names->node, e->feed,
					scheme_rest(e), &e->priv);
	else
		failed.status = resolver_open(e->names->resolver, e->feed, name,
					      entry_fresh(e));
	e->opened = !failed.status;
	if (e->opened)
		return;
	snprintf(failed.why, sizeof(failed.why), "%s",
		 strerror(-failed.status));
	(void)lnet_name_answer(e->names->node, e->feed, &failed, 0);
}

/* Ends looking the name up. The caller does not hold the lock. */
static void entry_close(struct name_entry *e)
{
	if (!e->opened)
		return;
	if (e->scheme)
		e->scheme->close(e->scheme->arg, e->priv);
	else
		resolver_close(e->names->resolver, e->feed);
}

/* Keeps the answer for users that come back soon, or frees @e. The caller holds
 * the lock. */
static void entry_keep(struct name_entry *e)
{
	struct names *names = e->names;
	struct name_entry *old = find_kept(names, e->text);

	if (!e->answer || !e->feed || names->closed) {
		entry_free(e);
		return;
	}
	if (old) {
		list_del(&old->link);
		names->nkept--;
		entry_free(old);
	}
	e->feed = 0;
	list_add_tail(&names->kept, &e->link);
	names->nkept++;
	kept_forget(names, NAMES_KEPT);
}

/* Called when a user of @e is gone: ends @e if it was the last one. The caller
 * holds the lock, which is released meanwhile. */
static void entry_put(struct name_entry *e)
{
	struct names *names = e->names;

	if (!list_empty(&e->users) || e->lookups)
		return;
	used_del(names, e);
	pthread_mutex_unlock(&names->lock);
	entry_close(e);
	pthread_mutex_lock(&names->lock);
	ports_release(e, e->answer);
	entry_keep(e);
}

/* Makes an entry, and adds it to names.used. Returns 0 or -errno. The caller
 * holds the lock. */
static int entry_make(struct names *names, const char *text,
		      const struct ulnet_target *target,
		      const struct name_text *name, struct name_entry **e_p)
{
	struct name_entry *e;
	bool begun;
	int rc;

	if (names->closed)
		return -ESHUTDOWN;
	if (names->nused >= NAMES_MAX)
		return -ENOSPC;
	e = entry_new(names, text);
	if (!e)
		return -ENOMEM;
	rc = entry_begin(e, target, name);
	begun = !rc;
	if (!rc)
		rc = used_add(names, e);
	if (rc) {
		/* Otherwise it has claimed no ports yet. */
		if (begun || e->feed)
			ports_release(e, e->answer);
		entry_free(e);
		return rc;
	}
	*e_p = e;
	return 0;
}

/* Finds the entry of @text, or makes it. The caller becomes a user: by @user
 * or, if that is NULL, by e->lookups. Returns 0 with *@e_p set, or -errno. */
static int entry_use(struct names *names, const char *text,
		     struct ulnet_name *user, struct name_entry **e_p,
		     struct ulnet_text_error *err)
{
	struct ulnet_target target;
	struct name_text name;
	struct name_entry *e;
	bool fresh;
	int rc = target_parse(text, &target, &name, err);

	if (rc)
		return rc;
	pthread_mutex_lock(&names->lock);
	e = find_used(names, text);
	fresh = !e;
	if (fresh)
		rc = entry_make(names, text, &target, &name, &e);
	if (!rc && user) {
		list_add_tail(&e->users, &user->link);
		user->entry = e;
		if (e->answer)
			user_post(user);
	} else if (!rc) {
		e->lookups++;
	}
	pthread_mutex_unlock(&names->lock);
	if (rc)
		return rc;
	if (fresh)
		entry_open(e, &name);
	*e_p = e;
	return 0;
}

/* ---- users ---- */

int lnet_name_open(struct lnet *node, unsigned int cpt, const char *text,
		   ulnet_name_fn fn, void *arg, struct ulnet_name **name_p,
		   struct ulnet_text_error *err)
{
	struct names *names = names_of(node);
	struct ulnet_name *user;
	struct name_entry *e;
	int rc;

	if (!names)
		return -ENXIO;
	user = calloc(1, sizeof(*user));
	if (!user)
		return -ENOMEM;
	*user = (struct ulnet_name){
		.names = names,
		.cpt = cpt,
		.fn = fn,
		.arg = arg,
		.work.fn = on_work,
	};
	/* Set before the name is used, because @fn may be called on the CPT
	 * before this returns. */
	*name_p = user;
	rc = entry_use(names, text, user, &e, err);
	if (rc) {
		*name_p = NULL;
		free(user);
	}
	return rc;
}

void lnet_name_close(struct ulnet_name *user)
{
	struct names *names;
	struct name_entry *e;
	bool posted;

	if (!user)
		return;
	names = user->names;
	e = user->entry;
	pthread_mutex_lock(&names->lock);
	user->closed = true;
	posted = user->posted;
	list_del(&user->link);
	entry_put(e);
	pthread_mutex_unlock(&names->lock);
	if (!posted)
		free(user);
}

/* Waits for the first answer until @until (ns). Returns 0, -ETIMEDOUT or
 * -ESHUTDOWN. The caller holds the lock, which is released while this waits. */
static int wait_for_answer(struct names *names, const struct name_entry *e,
			   uint64_t until)
{
	while (!e->answer && !names->closed) {
		if (lnet_is_virtual(names->node) ||
		    lnet_now(names->node, 0) >= until)
			return -ETIMEDOUT;
		(void)lnet_cond_wait(&names->changed, &names->lock, until);
	}
	return e->answer ? 0 : -ESHUTDOWN;
}

int lnet_name_lookup_wait(struct lnet *node, const char *text, uint64_t timeout,
			  struct ulnet_name_answer **answer_p,
			  struct ulnet_text_error *err)
{
	struct names *names = names_of(node);
	struct ulnet_name_answer *copy;
	struct name_entry *e;
	int rc;

	if (!names)
		return -ENXIO;
	if (lnet_in_turn())
		return -EDEADLK;
	rc = entry_use(names, text, NULL, &e, err);
	if (rc)
		return rc;
	pthread_mutex_lock(&names->lock);
	rc = wait_for_answer(names, e, lnet_now(node, 0) + timeout * 1000);
	copy = rc ? NULL : answer_copy(e->answer);
	e->lookups--;
	entry_put(e);
	pthread_mutex_unlock(&names->lock);
	if (rc)
		return rc;
	if (!copy)
		return -ENOMEM;
	*answer_p = copy;
	return 0;
}
