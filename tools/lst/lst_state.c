/* SPDX-License-Identifier: BSD-3-Clause */
#include "lst_command.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LINE_SIZE 512

bool state_name_good(const char *name)
{
	size_t length = strlen(name);

	if (!length || length >= STATE_NAME_SIZE)
		return false;
	for (const char *p = name; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("_.-", *p))
			return false;
	return name[0] != '.' && name[0] != '-';
}

void state_name_copy(char to[STATE_NAME_SIZE], const char *name)
{
	snprintf(to, STATE_NAME_SIZE, "%s", name);
}

struct state_group *state_group(struct state *s, const char *name)
{
	for (unsigned int i = 0; i < s->ngroups; i++)
		if (strcmp(s->groups[i].name, name) == 0)
			return &s->groups[i];
	return NULL;
}

struct state_batch *state_batch(struct state *s, const char *name)
{
	for (unsigned int i = 0; i < s->nbatches; i++)
		if (strcmp(s->batches[i].name, name) == 0)
			return &s->batches[i];
	return NULL;
}

/* ---- nodes ---- */

const char *const node_states[NODE_STATES] = {
	[NODE_UNKNOWN] = "unknown",
	[NODE_ACTIVE] = "active",
	[NODE_BUSY] = "busy",
	[NODE_DOWN] = "down",
};

static struct state_node *group_node(const struct state_group *g,
				     const struct ulnet_nid *nid)
{
	for (unsigned int i = 0; i < g->n; i++)
		if (lnet_nid_eq(&g->nodes[i].nid, nid))
			return &g->nodes[i];
	return NULL;
}

bool state_group_has(const struct state *s, const char *name,
		     const struct ulnet_nid *nid)
{
	for (unsigned int i = 0; i < s->ngroups; i++)
		if (strcmp(s->groups[i].name, name) == 0)
			return group_node(&s->groups[i], nid) != NULL;
	return false;
}

static const struct state_node *any_node(const struct state *s,
					 const struct ulnet_nid *nid)
{
	const struct state_node *node = NULL;

	for (unsigned int i = 0; i < s->ngroups && !node; i++)
		node = group_node(&s->groups[i], nid);
	return node;
}

bool state_has(const struct state *s, const struct ulnet_nid *nid)
{
	return any_node(s, nid) != NULL;
}

enum node_state state_of(const struct state *s, const struct ulnet_nid *nid)
{
	const struct state_node *node = any_node(s, nid);

	return node ? node->state : NODE_UNKNOWN;
}

void state_set_node(struct state *s, const struct ulnet_nid *nid,
		    enum node_state state)
{
	for (unsigned int i = 0; i < s->ngroups; i++) {
		struct state_node *node = group_node(&s->groups[i], nid);

		if (node)
			node->state = state;
	}
}

int state_group_add(struct state_group *g, const struct state_node *node)
{
	struct state_node *nodes;

	if (g->n == STATE_NODES)
		return -ENOSPC;
	nodes = realloc(g->nodes, (g->n + 1) * sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	nodes[g->n++] = *node;
	g->nodes = nodes;
	return 0;
}

void state_group_remove(struct state_group *g, const struct ulnet_nid *nid)
{
	struct state_node *node = group_node(g, nid);
	const struct state_node *end = g->nodes + g->n;

	if (!node)
		return;
	/* The other nodes keep their order, by which tests pair clients and
	 * servers. */
	memmove(node, node + 1, (size_t)(end - node - 1) * sizeof(*node));
	g->n--;
}

void state_group_del(struct state *s, struct state_group *g)
{
	free(g->nodes);
	*g = s->groups[--s->ngroups];
	s->groups[s->ngroups] = (struct state_group){ 0 };
}

/* ---- ports ---- */

int state_port_add(struct state *s, const struct ulnet_nid *nid, uint16_t port)
{
	struct state_port *ports;

	for (unsigned int i = 0; i < s->nports; i++)
		if (lnet_nid_eq(&s->ports[i].nid, nid)) {
			s->ports[i].port = port;
			return 0;
		}
	ports = realloc(s->ports, (s->nports + 1) * sizeof(*ports));
	if (!ports)
		return -ENOMEM;
	ports[s->nports++] = (struct state_port){ *nid, port };
	s->ports = ports;
	return 0;
}

/* ---- reading ---- */

static bool read_group(struct state *s, const char *name)
{
	if (s->ngroups == STATE_GROUPS || !state_name_good(name))
		return false;
	state_name_copy(s->groups[s->ngroups++].name, name);
	return true;
}

static bool read_node(struct state *s, const char *rest)
{
	char nid[LNET_NIDSTR_SIZE], word[8];
	struct state_node node = { .state = NODE_UNKNOWN };

	if (sscanf(rest, "%63s %7s", nid, word) != 2)
		return false;
	while (node.state < NODE_STATES &&
	       strcmp(word, node_states[node.state]) != 0)
		node.state++;
	return node.state < NODE_STATES && s->ngroups &&
	       lnet_nid_parse(nid, &node.nid) == 0 &&
	       state_group_add(&s->groups[s->ngroups - 1], &node) == 0;
}

static bool read_port(struct state *s, const char *rest)
{
	char text[LNET_NIDSTR_SIZE];
	struct ulnet_nid nid;
	uint16_t port;

	return sscanf(rest, "%63s %" SCNu16, text, &port) == 2 && port &&
	       lnet_nid_parse(text, &nid) == 0 &&
	       state_port_add(s, &nid, port) == 0;
}

static bool read_batch(struct state *s, const char *rest)
{
	struct state_batch *b = &s->batches[s->nbatches];

	if (s->nbatches == STATE_BATCHES ||
	    sscanf(rest, "%31s %" SCNu64, b->name, &b->id) != 2)
		return false;
	s->nbatches++;
	return true;
}

static bool read_test(struct state *s, const char *rest)
{
	struct state_test *t = &s->tests[s->ntests];

	if (s->ntests == STATE_TESTS ||
	    sscanf(rest, "%31s %31s %31s %127[^\n]", t->batch, t->from, t->to,
		   t->text) != 4)
		return false;
	s->ntests++;
	return true;
}

static bool read_arg(struct state *s, const char *rest)
{
	if (s->nargs == STATE_NODE_ARGS ||
	    sscanf(rest, "%31s %399[^\n]", s->args[s->nargs].option,
		   s->args[s->nargs].value) != 2)
		return false;
	s->nargs++;
	return true;
}

static bool read_session(struct state *s, const char *rest)
{
	int force;

	s->exists =
		sscanf(rest,
		       "%" SCNx64 " %" SCNd64 " %" SCNu64 " %d %u =%31[^\n]",
		       &s->console, &s->stamp, &s->next_batch, &force,
		       &s->timeout, s->name) == 6;
	s->force = s->exists && force;
	return s->exists;
}

static bool state_read_line(struct state *s, char *line)
{
	static const struct {
		const char *word;
		bool (*read)(struct state *s, const char *rest);
	} lines[] = { { "session", read_session }, { "arg", read_arg },
		      { "group", read_group },	   { "node", read_node },
		      { "batch", read_batch },	   { "test", read_test },
		      { "port", read_port } };
	char *rest = strchr(line, ' ');

	line[strcspn(line, "\n")] = '\0';
	if (!rest)
		return false;
	*rest++ = '\0';
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (strcmp(line, lines[i].word) == 0)
			return lines[i].read(s, rest);
	return false;
}

static int state_read(struct state *s)
{
	char line[LINE_SIZE];
	unsigned int number = 0;

	while (fgets(line, sizeof(line), s->file)) {
		number++;
		if (state_read_line(s, line))
			continue;
		fprintf(stderr, "lst: %s: line %u was not written by lst\n",
			s->path, number);
		return -EINVAL;
	}
	return 0;
}

/* ---- the file ---- */

static int path_make(struct state *s)
{
	const char *session = getenv("LST_SESSION");
	const char *dir = getenv("XDG_RUNTIME_DIR");
	int n;

	if (!session || !state_name_good(session)) {
		fputs("lst: LST_SESSION: the environment has to name the "
		      "session, by letters and digits: export LST_SESSION=$$\n",
		      stderr);
		return -EINVAL;
	}
	if (dir && *dir)
		n = asprintf(&s->path, "%s/ulnet-lst-%s", dir, session);
	else
		n = asprintf(&s->path, "/tmp/ulnet-lst-%u-%s",
			     (unsigned int)getuid(), session);
	return n < 0 ? -ENOMEM : 0;
}

/* Opens and locks the file, unless it belongs to another user. Returns 0;
 * -EAGAIN: another process has removed the file meanwhile; or another -errno,
 * after a message. */
static int file_open(struct state *s)
{
	int fd = open(s->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct stat st;

	if (fd < 0 || flock(fd, LOCK_EX) < 0 || fstat(fd, &st) < 0) {
		int rc = -errno;

		fprintf(stderr, "lst: %s: %s\n", s->path, strerror(-rc));
		if (fd >= 0)
			close(fd);
		return rc;
	}
	/* The command that had the lock before has ended the session, and
	 * removed the file. */
	if (!st.st_nlink) {
		close(fd);
		return -EAGAIN;
	}
	if (st.st_uid != geteuid() || !S_ISREG(st.st_mode)) {
		fprintf(stderr, "lst: %s: belongs to somebody else\n", s->path);
		close(fd);
		return -EPERM;
	}
	if (st.st_mtime < time(NULL))
		s->idle = (unsigned int)(time(NULL) - st.st_mtime);
	s->file = fdopen(fd, "r+");
	if (s->file)
		return 0;
	close(fd);
	return -ENOMEM;
}

int state_open(struct state *s)
{
	int rc = path_make(s);

	while (!rc && (rc = file_open(s)) == -EAGAIN)
		rc = 0;
	return rc ? rc : state_read(s);
}

bool state_expired(const struct state *s)
{
	return s->exists && s->timeout && s->idle > s->timeout;
}

void state_touch(const struct state *s)
{
	/* If this fails, the session may end early, which does no harm. */
	futimens(fileno(s->file), NULL);
}

void state_clear(struct state *s)
{
	while (s->ngroups)
		state_group_del(s, &s->groups[0]);
	free(s->ports);
	s->ports = NULL;
	s->nports = 0;
	s->nbatches = s->ntests = 0;
	s->exists = s->force = false;
}

static void write_ports(const struct state *s)
{
	char nid[LNET_NIDSTR_SIZE];

	for (unsigned int i = 0; i < s->nports; i++)
		if (state_has(s, &s->ports[i].nid))
			fprintf(s->file, "port %s %u\n",
				lnet_nid_format(&s->ports[i].nid, nid,
						sizeof(nid)),
				s->ports[i].port);
}

static void state_write(const struct state *s)
{
	fprintf(s->file,
		"session %" PRIx64 " %" PRId64 " %" PRIu64 " %d %u =%s\n",
		s->console, s->stamp, s->next_batch, s->force, s->timeout,
		s->name);
	for (unsigned int i = 0; i < s->nargs; i++)
		fprintf(s->file, "arg %s %s\n", s->args[i].option,
			s->args[i].value);
	for (unsigned int i = 0; i < s->ngroups; i++) {
		const struct state_group *g = &s->groups[i];
		char nid[LNET_NIDSTR_SIZE];

		fprintf(s->file, "group %s\n", g->name);
		for (unsigned int k = 0; k < g->n; k++)
			fprintf(s->file, "node %s %s\n",
				lnet_nid_format(&g->nodes[k].nid, nid,
						sizeof(nid)),
				node_states[g->nodes[k].state]);
	}
	write_ports(s);
	for (unsigned int i = 0; i < s->nbatches; i++)
		fprintf(s->file, "batch %s %" PRIu64 "\n", s->batches[i].name,
			s->batches[i].id);
	for (unsigned int i = 0; i < s->ntests; i++) {
		const struct state_test *t = &s->tests[i];

		fprintf(s->file, "test %s %s %s %s\n", t->batch, t->from, t->to,
			t->text);
	}
}

int state_save(struct state *s)
{
	int rc = 0;

	if (!s->exists)
		return unlink(s->path) ? -errno : 0;
	rewind(s->file);
	if (ftruncate(fileno(s->file), 0))
		rc = -errno;
	state_write(s);
	if (!rc && fflush(s->file))
		rc = -errno;
	if (rc)
		fprintf(stderr, "lst: %s: %s\n", s->path, strerror(-rc));
	return rc;
}

void state_close(struct state *s)
{
	/* If there is no session, state_open() has made the file, and it is
	 * empty. */
	if (s->file && !s->exists)
		unlink(s->path);
	if (s->file)
		fclose(s->file);
	state_clear(s);
	free(s->path);
}
