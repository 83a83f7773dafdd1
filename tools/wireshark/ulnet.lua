-- SPDX-License-Identifier: BSD-3-Clause
--
-- A dissector for Wireshark and tshark: LNet over TCP (connection request,
-- HELLO, messages, ping information), and the RPC of ulnet in LNet's PUTs.
-- Manual: ulnet_wireshark(7); RPC on the wire: ulrpc_protocol(7).
--
-- The magic number at the beginning of a frame shows its byte order. The size
-- of LNet's header is negotiated in the HELLO of the connection; if the capture
-- has no HELLO, it is guessed for each message.

local lnet = Proto("ulnet", "LNet over TCP (ulnet)")
local rpc = Proto("ulrpc", "ulnet RPC")

local DEFAULT_PORT = 988
lnet.prefs.ports = Pref.range("TCP ports", tostring(DEFAULT_PORT),
	"TCP ports of LNet nodes", 65535)

local MAGIC_REQUEST = 0xacce7100
local MAGIC_HELLO = 0x45726963
local MAGIC_INFO = 0x70696e67
local NOOP, LNET = 0xc0, 0xc1
local KSM_SIZE, HDR_SIZE, HDR_LARGE_SIZE = 24, 72, 96
local MTU = 1048576
local IPS_MAX = 16

-- ---- names ----

local net_names = {
	[2] = "tcp", [5] = "o2ib", [9] = "lo", [13] = "gni", [14] = "gip",
	[15] = "ptlf", [16] = "kfi", [18] = "efa", [19] = "bxi3f",
}
local number_nets = { [9] = true, [13] = true, [15] = true, [16] = true }
local conn_types = {
	[0] = "ANY", [1] = "CONTROL", [2] = "BULK_IN", [3] = "BULK_OUT",
	[0xffffffff] = "NONE",
}
local ksm_types = { [NOOP] = "NOOP", [LNET] = "LNET" }
local ACK, PUT, GET, REPLY = 0, 1, 2, 3
local msg_types = {
	[ACK] = "ACK", [PUT] = "PUT", [GET] = "GET", [REPLY] = "REPLY",
	[4] = "HELLO",
}
local ni_states = {
	[0x15aac0de] = "UP", [0xdeadface] = "DOWN", [0] = "INVALID",
}
local feature_bits = {
	{ 0x01, "base" }, { 0x02, "ni_status" }, { 0x04, "rte_disabled" },
	{ 0x08, "multi_rail" }, { 0x10, "discovery" },
	{ 0x20, "large_addr" }, { 0x40, "primary_large" },
	{ 0x80, "metadata" },
}

-- ---- fields ----

local f = {}
local function field(name, make, ...)
	f[name] = make("ulnet." .. name, ...)
end

field("request", ProtoField.none, "Connection request")
field("request_version", ProtoField.uint32, "Version")
field("target_nid", ProtoField.string, "Target NID")
field("hello", ProtoField.none, "HELLO")
field("hello_version", ProtoField.uint32, "Version")
field("hello_src_nid", ProtoField.string, "Source NID")
field("hello_dst_nid", ProtoField.string, "Destination NID")
field("hello_src_pid", ProtoField.uint32, "Source pid")
field("hello_dst_pid", ProtoField.uint32, "Destination pid")
field("src_incarnation", ProtoField.uint64, "Source incarnation", base.HEX)
field("dst_incarnation", ProtoField.uint64, "Destination incarnation",
	base.HEX)
field("conn_type", ProtoField.uint32, "Connection type", base.DEC, conn_types)
field("nips", ProtoField.uint32, "IPv4 addresses")
field("ip", ProtoField.string, "IPv4 address")
field("ksm_type", ProtoField.uint32, "Kind", base.HEX, ksm_types)
field("csum", ProtoField.uint32, "Checksum", base.HEX)
field("zc_cookie", ProtoField.uint64, "Cookie 0")
field("ack_cookie", ProtoField.uint64, "Cookie 1")
field("keepalive", ProtoField.bool, "Keepalive")
field("dest_nid", ProtoField.string, "Destination NID")
field("src_nid", ProtoField.string, "Source NID")
field("dest_pid", ProtoField.uint32, "Destination pid")
field("src_pid", ProtoField.uint32, "Source pid")
field("type", ProtoField.uint32, "Type", base.DEC, msg_types)
field("payload_length", ProtoField.uint32, "Payload length")
field("wmd_node", ProtoField.uint64, "Handle: node", base.HEX)
field("wmd_object", ProtoField.uint64, "Handle: object", base.HEX)
field("match_bits", ProtoField.uint64, "Match bits", base.HEX)
field("hdr_data", ProtoField.uint64, "Header data", base.HEX)
field("portal", ProtoField.uint32, "Portal")
field("offset", ProtoField.uint32, "Offset")
field("sink_length", ProtoField.uint32, "Sink length")
field("mlength", ProtoField.uint32, "Bytes taken")
field("payload", ProtoField.bytes, "Payload")
field("info", ProtoField.none, "Ping information")
field("info_features", ProtoField.uint32, "Features", base.HEX)
for _, bit in ipairs(feature_bits) do
	field("info_" .. bit[2], ProtoField.bool, bit[2], 32, nil, bit[1])
end
field("info_pid", ProtoField.uint32, "Pid")
field("info_nnis", ProtoField.uint32, "Entries")
field("info_sequence", ProtoField.uint32, "Sequence number")
field("info_size", ProtoField.uint32, "Size of all of it")
field("info_nid", ProtoField.string, "NID")
field("info_status", ProtoField.uint32, "Status", base.HEX, ni_states)

local e = {
	unknown = ProtoExpert.new("ulnet.unknown",
		"Not the beginning of a frame of LNet",
		expert.group.UNDECODED, expert.severity.NOTE),
	bad = ProtoExpert.new("ulnet.bad", "What no sane peer sends",
		expert.group.PROTOCOL, expert.severity.WARN),
}
lnet.experts = { e.unknown, e.bad }

local list = {}
for _, one in pairs(f) do
	list[#list + 1] = one
end
lnet.fields = list

local tcp_stream = Field.new("tcp.stream")

-- ---- numbers and NIDs ----

-- Numbers in the byte order of their sender; @le: little-endian.
local function u32(range, le)
	return le and range:le_uint() or range:uint()
end

local function add(tree, what, range, le)
	return le and tree:add_le(what, range) or tree:add(what, range)
end

local function net_text(kind, number)
	local name = net_names[kind] or string.format("<%d:%d>", kind, number)

	if not net_names[kind] or number == 0 or kind == 9 then
		return name
	end
	return name .. number
end

local function addr_text(kind, addr)
	if number_nets[kind] then
		return tostring(addr)
	end
	return string.format("%d.%d.%d.%d", bit.band(bit.rshift(addr, 24), 255),
		bit.band(bit.rshift(addr, 16), 255),
		bit.band(bit.rshift(addr, 8), 255), bit.band(addr, 255))
end

-- A NID of 8 bytes: address, number of the net, type of the net; in reverse
-- from a big-endian sender.
local function nid4_text(range, le)
	local addr, number, kind

	if le then
		addr, number, kind = range(0, 4):le_uint(),
			range(4, 2):le_uint(), range(6, 2):le_uint()
	else
		addr, number, kind = range(4, 4):uint(), range(2, 2):uint(),
			range(0, 2):uint()
	end
	if addr == 0xffffffff and number == 0xffff and kind == 0xffff then
		return "<?>"
	end
	return addr_text(kind, addr) .. "@" .. net_text(kind, number)
end

-- A large NID: 20 bytes, or only the nid_size + 8 in use; always big-endian.
local function large_text(range)
	local size, kind, number = range(0, 1):uint(), range(1, 1):uint(),
		range(2, 2):uint()

	if kind == 255 then
		return "<?>"
	end
	if size == 12 and range:len() >= 20 then
		return tostring(range(4, 16):ipv6()) .. "@" ..
			net_text(kind, number)
	end
	if size == 0 then
		return addr_text(kind, range(4, 4):uint()) .. "@" ..
			net_text(kind, number)
	end
	return string.format("<NID of %d bytes>", size + 8)
end

-- ---- the course of a capture ----

-- By TCP stream: do its headers have large NIDs?
local large_streams = {}
-- By packet: texts for the Info column, since a packet may have several frames.
local column = {}

function lnet.init()
	large_streams = {}
end

local function stream_number()
	local stream = tcp_stream()

	return stream and stream.value
end

local function say(text)
	column[#column + 1] = text
end

-- Without a HELLO: a large NID begins with 0 or 12, and its type; a small one
-- of type T ends with T and 0.
local function looks_large(hdr)
	local size, kind = hdr(0, 1):uint(), hdr(1, 1):uint()

	return (size == 12 or size == 0) and net_names[kind] ~= nil and
		not (net_names[hdr(6, 1):uint()] and hdr(7, 1):uint() == 0)
end

local function is_large(hdr)
	local stream = stream_number()
	local known = stream and large_streams[stream]

	if known ~= nil then
		return known
	end
	return looks_large(hdr)
end

-- ---- how long a frame is ----

-- These functions return the size of the frame that begins at @buf, or nil and
-- how many bytes they need to tell; 0: no frame begins there.
local function request_size(buf, le)
	if buf:len() < 8 then
		return nil, 8
	end
	local version = u32(buf(4, 4), le)

	return version == 1 and 16 or version == 2 and 28 or 0
end

local function hello_size(buf, le)
	if buf:len() < 8 then
		return nil, 8
	end
	local version = u32(buf(4, 4), le)

	if version == 4 then
		return 80
	end
	if version ~= 2 and version ~= 3 then
		return 0
	end
	if buf:len() < 56 then
		return nil, 56
	end
	local nips = u32(buf(52, 4), le)

	return nips <= IPS_MAX and 56 + 4 * nips or 0
end

local function message_size(buf, le)
	if u32(buf(0, 4), le) == NOOP then
		return KSM_SIZE
	end
	-- Bytes that tell the size of the header, and then that of the frame.
	if buf:len() < KSM_SIZE + 8 then
		return nil, KSM_SIZE + 8
	end
	local large = is_large(buf(KSM_SIZE))
	local at = KSM_SIZE + (large and 52 or 28)

	if buf:len() < at + 4 then
		return nil, at + 4
	end
	local length = buf(at, 4):le_uint()

	if length > MTU then
		return 0
	end
	return KSM_SIZE + (large and HDR_LARGE_SIZE or HDR_SIZE) + length
end

local sizes = {
	[MAGIC_REQUEST] = request_size,
	[MAGIC_HELLO] = hello_size,
	[NOOP] = message_size,
	[LNET] = message_size,
}

-- The magic number at the beginning of @buf, and the byte order.
local function begins(buf)
	local le, be = buf(0, 4):le_uint(), buf(0, 4):uint()

	if sizes[le] then
		return le, true
	end
	if sizes[be] then
		return be, false
	end
	return nil
end

-- ---- frames ----

local function dissect_request(buf, tree, le)
	local version = u32(buf(4, 4), le)
	local nid = version == 1 and nid4_text(buf(8, 8), le) or
		large_text(buf(8, 20))
	local t = tree:add(f.request, buf())

	add(t, f.request_version, buf(4, 4), le)
	t:add(f.target_nid, buf(8), nid)
	t:append_text(" to " .. nid)
	say("Request " .. nid)
end

-- The offsets of fields, with small NIDs and with large ones.
local hello_small = { nid = 8, src = 8, dst = 16, rest = 24 }
local hello_large = { nid = 20, src = 8, dst = 28, rest = 48 }

local function dissect_hello(buf, tree, le)
	local version = u32(buf(4, 4), le)
	local at = version == 4 and hello_large or hello_small
	local text = version == 4 and large_text or nid4_text
	local src = text(buf(at.src, at.nid), le)
	local dst = text(buf(at.dst, at.nid), le)
	local t = tree:add(f.hello, buf())
	local stream = stream_number()
	local kind = u32(buf(at.rest + 24, 4), le)

	if stream then
		large_streams[stream] = version == 4
	end
	add(t, f.hello_version, buf(4, 4), le)
	t:add(f.hello_src_nid, buf(at.src, at.nid), src)
	t:add(f.hello_dst_nid, buf(at.dst, at.nid), dst)
	add(t, f.hello_src_pid, buf(at.rest, 4), le)
	add(t, f.hello_dst_pid, buf(at.rest + 4, 4), le)
	add(t, f.src_incarnation, buf(at.rest + 8, 8), le)
	add(t, f.dst_incarnation, buf(at.rest + 16, 8), le)
	local c = add(t, f.conn_type, buf(at.rest + 24, 4), le)
	if not conn_types[kind] then
		c:add_proto_expert_info(e.bad)
	end
	add(t, f.nips, buf(at.rest + 28, 4), le)
	for ip = at.rest + 32, buf:len() - 4, 4 do
		t:add(f.ip, buf(ip, 4), addr_text(2, u32(buf(ip, 4), le)))
	end
	t:append_text(string.format(" %s > %s, %s", src, dst,
		conn_types[kind] or "?"))
	say("HELLO " .. (conn_types[kind] or "?"))
end

-- ---- ping information ----

local function dissect_large_entries(buf, tree, le)
	local at = 0

	while buf:len() - at >= 12 do
		local size = buf(at + 4, 1):uint() + 8
		local entry = (4 + size + 3) - (4 + size + 3) % 4

		if size > 20 or buf:len() - at < 4 + size then
			tree:add_proto_expert_info(e.bad)
			return
		end
		local t = tree:add(f.info_nid, buf(at + 4, size),
			large_text(buf(at + 4, size)))
		add(t, f.info_status, buf(at, 4), le)
		at = at + entry
	end
end

local function dissect_entry(buf, tree, first, le)
	local t = tree:add(f.info_nid, buf(0, 8), nid4_text(buf(0, 8), le))

	if first then
		add(t, f.info_sequence, buf(8, 4), le)
		add(t, f.info_size, buf(12, 4), le)
	else
		add(t, f.info_status, buf(8, 4), le)
	end
end

-- False: this is not ping information.
local function dissect_info(buf, tree)
	if buf:len() < 16 then
		return false
	end
	local le = buf(0, 4):le_uint() == MAGIC_INFO

	if not le and buf(0, 4):uint() ~= MAGIC_INFO then
		return false
	end
	local t = tree:add(f.info, buf())
	local features = add(t, f.info_features, buf(4, 4), le)
	local n, at = u32(buf(12, 4), le), 16

	for _, bit in ipairs(feature_bits) do
		add(features, f["info_" .. bit[2]], buf(4, 4), le)
	end
	add(t, f.info_pid, buf(8, 4), le)
	add(t, f.info_nnis, buf(12, 4), le)
	for i = 1, n do
		if buf:len() - at < 16 then
			break -- the sink was too short for the rest
		end
		dissect_entry(buf(at, 16), t, i == 1, le)
		at = at + 16
	end
	if bit.band(u32(buf(4, 4), le), 0x20) ~= 0 and buf:len() > at then
		dissect_large_entries(buf(at), t, le)
	end
	return true
end

-- ---- RPC: messages of protobuf, by their tables ----

-- name = { number = { field, type } }, as rpc/wire/wire.proto has them; a type
-- that is a name here is a message. tests/tools/wireshark.sh compares them.
local messages = {
	Requests = {
		[1] = { "connection", "fixed64" },
		[2] = { "client", "fixed64" },
		[3] = { "epoch", "uint32" },
		[4] = { "acked", "uint64" },
		[5] = { "call", "Call" },
		[6] = { "checksum", "fixed64" },
		[7] = { "flavour", "uint32" },
		[8] = { "service", "uint32" },
		[15] = { "bodies", "bytes" },
	},
	Call = {
		[1] = { "xid", "uint64" },
		[2] = { "attempt", "uint32" },
		[3] = { "method", "fixed32" },
		[4] = { "length", "uint32" },
		[5] = { "timeout", "uint64" },
		[6] = { "remaining", "uint64" },
		[7] = { "flags", "uint32" },
		[8] = { "priority", "uint32" },
		[9] = { "reply_max", "uint32" },
		[10] = { "slot", "uint32" },
		[11] = { "semantics", "uint32" },
		[12] = { "bulk", "Segments" },
		[13] = { "trace", "bytes" },
		[14] = { "reply_limit", "uint32" },
	},
	Segments = {
		[1] = { "match", "fixed64" },
		[2] = { "access", "uint32" },
		[3] = { "length", "uint32" },
		[4] = { "checksum", "fixed32" },
		[5] = { "checked", "bool" },
		[6] = { "protection", "uint32" },
		[7] = { "seals", "bytes" },
	},
	Replies = {
		[1] = { "client", "fixed64" },
		[2] = { "epoch", "uint32" },
		[3] = { "window", "uint32" },
		[4] = { "reply", "Reply" },
		[5] = { "estimate", "uint64" },
		[6] = { "checksum", "fixed64" },
		[15] = { "bodies", "bytes" },
	},
	Reply = {
		[1] = { "xid", "uint64" },
		[2] = { "attempt", "uint32" },
		[3] = { "status", "uint32" },
		[4] = { "error", "uint32" },
		[5] = { "length", "uint32" },
		[6] = { "queue", "uint64" },
		[7] = { "service", "uint64" },
		[8] = { "retry_after", "uint64" },
		[9] = { "bulk", "Moved" },
		[10] = { "throttled", "uint64" },
		[11] = { "needed", "uint32" },
		[12] = { "absent", "uint64" },
		[13] = { "held", "fixed64" },
		[14] = { "unexecuted", "bool" },
		[15] = { "checksum", "fixed64" },
	},
	Moved = {
		[1] = { "index", "uint32" },
		[2] = { "checksum", "fixed32" },
		[3] = { "length", "uint32" },
		[4] = { "seals", "bytes" },
	},
	Annex = {
		[1] = { "pair", "Pair" },
		[2] = { "error", "uint32" },
		[3] = { "text", "bytes" },
		[4] = { "type", "bytes" },
		[5] = { "details", "bytes" },
		[6] = { "defines", "uint32" },
		[7] = { "refers", "uint32" },
	},
	Pair = {
		[1] = { "name", "bytes" },
		[2] = { "value", "bytes" },
	},
	Control = {
		[1] = { "connect", "Connect" },
		[2] = { "connected", "Connected" },
		[3] = { "open", "Open" },
		[4] = { "opened", "Opened" },
		[5] = { "disconnect", "Disconnect" },
		[6] = { "disconnected", "Disconnected" },
		[7] = { "keepalive", "Keepalive" },
		[8] = { "alive", "Alive" },
		[9] = { "extend", "Extend" },
		[10] = { "cancel", "Cancel" },
		[11] = { "goodbye", "Goodbye" },
		[12] = { "shake", "Shake" },
		[13] = { "shaken", "Shaken" },
		[14] = { "lost", "Lost" },
	},
	Connect = {
		[1] = { "client_id", "bytes" },
		[2] = { "client", "fixed64" },
		[3] = { "epoch", "uint32" },
		[4] = { "keepalive", "uint64" },
		[5] = { "version_min", "uint32" },
		[6] = { "version_max", "uint32" },
		[7] = { "annexes", "bool" },
		[8] = { "limits", "bool" },
		[9] = { "reply_limit", "uint32" },
		[10] = { "former", "fixed64" },
	},
	Connected = {
		[1] = { "client", "fixed64" },
		[2] = { "epoch", "uint32" },
		[3] = { "status", "uint32" },
		[4] = { "server_id", "bytes" },
		[5] = { "connection", "fixed64" },
		[6] = { "reconnected", "bool" },
		[7] = { "keepalive", "uint64" },
		[8] = { "lease", "uint64" },
		[9] = { "version", "uint32" },
		[10] = { "retry_after", "uint64" },
		[11] = { "clients", "uint32" },
		[12] = { "slots", "uint32" },
		[13] = { "annexes", "bool" },
		[14] = { "sets", "uint32" },
		[15] = { "absent", "uint64" },
	},
	Open = {
		[1] = { "connection", "fixed64" },
		[2] = { "client", "fixed64" },
		[3] = { "epoch", "uint32" },
		[4] = { "tag", "fixed64" },
		[5] = { "service", "string" },
		[6] = { "rtt", "uint64" },
		[7] = { "flavour", "uint32" },
		[8] = { "numbers", "bool" },
	},
	Opened = {
		[1] = { "client", "fixed64" },
		[2] = { "epoch", "uint32" },
		[3] = { "tag", "fixed64" },
		[4] = { "status", "uint32" },
		[5] = { "portal", "uint32" },
		[6] = { "request_max", "uint32" },
		[7] = { "window", "uint32" },
		[8] = { "message_max", "uint32" },
		[9] = { "incarnation", "bytes" },
		[10] = { "durable", "bool" },
		[11] = { "estimate", "uint64" },
		[12] = { "begin", "uint32" },
		[13] = { "checked", "bool" },
		[14] = { "flavour", "uint32" },
		[15] = { "number", "uint32" },
		[16] = { "request_limit", "uint32" },
	},
	Disconnect = {
		[1] = { "connection", "fixed64" },
		[2] = { "client", "fixed64" },
		[3] = { "epoch", "uint32" },
	},
	Disconnected = {
		[1] = { "client", "fixed64" },
		[2] = { "epoch", "uint32" },
	},
	Keepalive = {
		[1] = { "connection", "fixed64" },
		[2] = { "client", "fixed64" },
		[3] = { "epoch", "uint32" },
		[4] = { "sequence", "uint64" },
		[5] = { "acked", "uint64" },
		[6] = { "rtt", "uint64" },
	},
	Alive = {
		[1] = { "client", "fixed64" },
		[2] = { "epoch", "uint32" },
		[3] = { "sequence", "uint64" },
		[4] = { "status", "uint32" },
		[5] = { "clients", "uint32" },
	},
	Extend = {
		[1] = { "client", "fixed64" },
		[2] = { "epoch", "uint32" },
		[3] = { "extension", "Extension" },
	},
	Extension = {
		[1] = { "xid", "uint64" },
		[2] = { "slot", "uint32" },
		[3] = { "attempt", "uint32" },
		[4] = { "extend", "uint64" },
		[5] = { "state", "uint32" },
		[6] = { "position", "uint32" },
		[7] = { "progress", "uint32" },
	},
	Cancel = {
		[1] = { "connection", "fixed64" },
		[2] = { "client", "fixed64" },
		[3] = { "epoch", "uint32" },
		[4] = { "gone", "Gone" },
	},
	Gone = {
		[1] = { "xid", "uint64" },
		[2] = { "slot", "uint32" },
	},
	Goodbye = {
		[1] = { "client", "fixed64" },
		[2] = { "epoch", "uint32" },
		[3] = { "status", "uint32" },
		[4] = { "connection", "fixed64" },
		[5] = { "unexecuted", "uint64" },
	},
	Shake = {
		[1] = { "client", "fixed64" },
		[2] = { "epoch", "uint32" },
		[3] = { "session", "fixed64" },
		[4] = { "offset", "uint32" },
		[5] = { "piece", "bytes" },
		[6] = { "seen", "uint32" },
		[7] = { "client_id", "bytes" },
	},
	Shaken = {
		[1] = { "client", "fixed64" },
		[2] = { "epoch", "uint32" },
		[3] = { "session", "fixed64" },
		[4] = { "offset", "uint32" },
		[5] = { "piece", "bytes" },
		[6] = { "seen", "uint32" },
		[7] = { "status", "uint32" },
		[8] = { "server_id", "bytes" },
		[9] = { "retry_after", "uint64" },
	},
	Lost = {
		[1] = { "client", "fixed64" },
		[2] = { "epoch", "uint32" },
		[3] = { "session", "fixed64" },
	},
}

-- The enum Status of rpc/wire/wire.proto; tests/tools/wireshark.sh compares.
local statuses = {
	[0] = "OK",
	[1] = "FAILED",
	[2] = "NO_SERVICE",
	[3] = "NO_METHOD",
	[4] = "OVERLOADED",
	[5] = "EXPIRED",
	[6] = "NOT_CONNECTED",
	[7] = "STALE_EPOCH",
	[8] = "SHUTTING_DOWN",
	[9] = "BAD_REQUEST",
	[10] = "REFUSED",
	[11] = "TOO_LONG",
	[12] = "BULK_FAILED",
	[13] = "VERSION",
	[14] = "DOUBTFUL",
	[15] = "UNKNOWN_CALL",
	[16] = "HELD",
	[17] = "STALLED",
	[18] = "ANNEXED",
	[19] = "HELD_ANNEXED",
	[20] = "UNKNOWN_SET",
}
local names_of = {
	status = statuses,
	access = { [1] = "SOURCE", [2] = "SINK" },
	state = { [0] = "QUEUED", [1] = "THROTTLED", [2] = "RUNNING",
		[3] = "BULK" },
}
local hex_fields = { method = true, checksum = true, flags = true }

local makers = {
	fixed64 = function(name, text)
		return ProtoField.uint64(name, text, base.HEX)
	end,
	fixed32 = function(name, text)
		return ProtoField.uint32(name, text, base.HEX)
	end,
	uint64 = function(name, text)
		return ProtoField.uint64(name, text)
	end,
	uint32 = function(name, text)
		return ProtoField.uint32(name, text,
			hex_fields[text] and base.HEX or base.DEC,
			names_of[text])
	end,
	bool = function(name, text)
		return ProtoField.bool(name, text)
	end,
	bytes = function(name, text)
		return ProtoField.bytes(name, text)
	end,
	string = function(name, text)
		return ProtoField.string(name, text)
	end,
}

local r = {}       -- "Message.field" = its ProtoField
local r_list = {}
local function rpc_field(key, one)
	r[key] = one
	r_list[#r_list + 1] = one
end

for message, fields in pairs(messages) do
	local prefix = "ulrpc." .. message:lower()

	rpc_field(message, ProtoField.none(prefix, message))
	for _, one in pairs(fields) do
		local make = makers[one[2]]

		if make then
			rpc_field(message .. "." .. one[1],
				make(prefix .. "." .. one[1], one[1]))
		end
	end
end
rpc_field("head", ProtoField.uint32("ulrpc.head", "Bytes of the head"))
rpc_field("crc", ProtoField.uint32("ulrpc.crc", "CRC32C of the head",
	base.HEX))
rpc_field("crc_good", ProtoField.bool("ulrpc.crc.good",
	"CRC32C is that of the head"))
rpc_field("version", ProtoField.uint8("ulrpc.version", "Version"))
rpc_field("protection", ProtoField.uint8("ulrpc.sealed.protection",
	"Protection", base.DEC, { [1] = "can be read", [2] = "encrypted" }))
rpc_field("generation", ProtoField.uint32("ulrpc.sealed.generation",
	"Generation of the key"))
rpc_field("handle", ProtoField.uint64("ulrpc.sealed.handle",
	"The receiver's handle", base.HEX))
rpc_field("counter", ProtoField.uint64("ulrpc.sealed.counter", "Counter"))
rpc_field("tag", ProtoField.bytes("ulrpc.sealed.tag", "Tag"))
rpc.fields = r_list
local rpc_bad = ProtoExpert.new("ulrpc.bad", "Not well-formed",
	expert.group.PROTOCOL, expert.severity.WARN)
rpc.experts = { rpc_bad }

-- A varint at @at: UInt64, its size; nil: there is none.
local function varint(buf, at)
	local lo, hi, scale = 0, 0, 1

	for i = 0, 9 do
		if at + i >= buf:len() then
			return nil
		end
		local byte = buf(at + i, 1):uint()
		local seven = byte % 128

		if i < 4 then
			lo = lo + seven * 2 ^ (7 * i)
		elseif i == 4 then
			lo = lo + (seven % 16) * 2 ^ 28
			hi = math.floor(seven / 16)
		else
			hi = (hi + seven * 2 ^ (7 * i - 32)) % 2 ^ 32
		end
		if byte < 128 then
			return UInt64.new(lo, hi), i + 1, lo
		end
	end
	return nil
end

local function add_varint(tree, key, kind, range, value, low)
	if kind == "uint64" then
		tree:add(r[key], range, value)
	elseif kind == "bool" then
		tree:add(r[key], range, value ~= UInt64.new(0))
	else
		tree:add(r[key], range, low)
	end
end

-- A packed field of numbers.
local function add_packed(tree, key, kind, buf)
	local at = 0

	while at < buf:len() do
		if kind == "fixed32" or kind == "fixed64" then
			local size = kind == "fixed32" and 4 or 8

			if buf:len() - at < size then
				return false
			end
			tree:add_le(r[key], buf(at, size))
			at = at + size
		else
			local value, size, low = varint(buf, at)

			if not value then
				return false
			end
			add_varint(tree, key, kind, buf(at, size), value, low)
			at = at + size
		end
	end
	return true
end

local numbers = { uint32 = 0, uint64 = 0, bool = 0, fixed64 = 1, fixed32 = 5 }
local notes = {
	["Call.xid"] = "xid", ["Reply.xid"] = "xid", ["Gone.xid"] = "xid",
	["Extension.xid"] = "xid", ["Open.service"] = "service",
}

local dissect_message

-- A field of wire type 2 whose type is known.
local function add_length(tree, name, one, buf, depth)
	local key = name .. "." .. one[1]

	if messages[one[2]] then
		return dissect_message(buf, tree, one[2], depth + 1)
	end
	if numbers[one[2]] then
		return add_packed(tree, key, one[2], buf)
	end
	tree:add(r[key], buf)
	if notes[key] then
		say(notes[key] .. " " .. buf:string())
	end
	return true
end

-- By wire type: the size of the content of a field, and of a length before it,
-- at @at; nil: malformed.
local wire_sizes = {
	[0] = function(buf, at)
		local _, size = varint(buf, at)
		return size, 0
	end,
	[1] = function(buf, at)
		return 8, 0
	end,
	[2] = function(buf, at)
		local _, size, low = varint(buf, at)
		return size and low, size
	end,
	[5] = function(buf, at)
		return 4, 0
	end,
}

local function add_number(tree, name, one, range)
	local key = name .. "." .. one[1]

	if one[2] == "fixed64" or one[2] == "fixed32" then
		tree:add_le(r[key], range)
		return
	end
	local value, _, low = varint(range, 0)

	add_varint(tree, key, one[2], range, value, low)
	if notes[key] then
		say(notes[key] .. " " .. tostring(value))
	elseif key == "Reply.status" then
		say(statuses[low] or tostring(low))
	end
end

-- Adds the content of a field by its type in the table; others are skipped.
local function dissect_field(tree, name, number, wire, content, depth)
	local one = messages[name][number]

	if not one then
		return true
	end
	if wire == 2 and (not numbers[one[2]] or content:len() > 0) then
		return add_length(tree, name, one, content, depth)
	end
	if numbers[one[2]] == wire then
		add_number(tree, name, one, content)
	end
	return true
end

-- Adds the fields of a message. False: malformed, and marked where it is.
local function dissect_fields(buf, tree, name, depth)
	local at = 0

	while at < buf:len() do
		local _, size, tag = varint(buf, at)
		local wire = size and tag % 8
		local len, before

		if size and wire_sizes[wire] then
			len, before = wire_sizes[wire](buf, at + size)
		end
		if not len or at + size + before + len > buf:len() then
			return false
		end
		local from = at + size + before

		-- Wireshark has no empty ranges.
		if len > 0 and not dissect_field(tree, name,
				math.floor(tag / 8), wire, buf(from, len),
				depth) then
			return false
		end
		at = from + len
	end
	return true
end

local controls = {} -- the messages of RPC's control portal
for _, one in pairs(messages.Control) do
	controls[one[2]] = true
end

function dissect_message(buf, tree, name, depth)
	local t = tree:add(r[name], buf)

	if controls[name] then
		say(name)
	end
	if depth > 4 or not dissect_fields(buf, t, name, depth) then
		t:add_proto_expert_info(rpc_bad)
	end
	return true
end

-- ---- RPC: which PUTs are of it ----

local KINDS = { [1] = "Requests", [2] = "Replies", [3] = "Control" }

local crc_table = {}
for i = 0, 255 do
	local crc = i

	for _ = 1, 8 do
		local odd = bit.band(crc, 1) == 1

		crc = bit.rshift(crc, 1)
		if odd then
			crc = bit.bxor(crc, 0x82f63b78)
		end
	end
	crc_table[i] = crc
end

local function crc32c(range)
	local bytes = range:bytes():raw()
	local crc = bit.bnot(0)

	for i = 1, #bytes do
		crc = bit.bxor(bit.rshift(crc, 8), crc_table[
			bit.band(bit.bxor(crc, bytes:byte(i)), 255)])
	end
	return bit.bnot(crc) % 2 ^ 32
end

-- A message of a connection with keys: a record (secure/record.h).
local function dissect_sealed(hdr_data, payload, tree)
	local kind = KINDS[hdr_data(6, 1):uint()]

	if not kind or payload:len() < 40 or payload(0, 1):uint() ~= 1 then
		return false
	end
	local private = payload(1, 1):uint() == 2
	local t = tree:add(rpc, payload)

	t:add(r.version, hdr_data(7, 1))
	t:add_le(r.head, hdr_data(4, 2))
	t:add(r.protection, payload(1, 1))
	t:add_le(r.generation, payload(4, 4))
	t:add_le(r.handle, payload(8, 8))
	t:add_le(r.counter, payload(16, 8))
	t:add(r.tag, payload(24, 16))
	t:append_text(", " .. kind .. ", sealed")
	if private or payload:len() == 40 then
		say(kind .. (private and ", encrypted" or ""))
		return true
	end
	if kind ~= "Control" then
		say(kind)
	end
	return dissect_message(payload(40), t, kind, 0)
end

-- @hdr_data: 8 bytes. False: the PUT is not one of RPC.
local function dissect_rpc(hdr_data, payload, tree)
	if hdr_data(7, 1):uint() == 2 then
		return dissect_sealed(hdr_data, payload, tree)
	end
	local crc, head = hdr_data(0, 4):le_uint(), hdr_data(4, 2):le_uint()
	local kind = KINDS[hdr_data(6, 1):uint()]

	if hdr_data(7, 1):uint() ~= 1 or not kind or head == 0 or
			head > payload:len() then
		return false
	end
	local good = crc32c(payload(0, head)) == crc
	local t = tree:add(rpc, payload)

	t:add(r.version, hdr_data(7, 1))
	t:add_le(r.head, hdr_data(4, 2))
	t:add_le(r.crc, hdr_data(0, 4))
	t:add(r.crc_good, hdr_data(0, 4), good)
	if not good then
		t:add_proto_expert_info(rpc_bad, "Wrong CRC32C")
	end
	t:append_text(", " .. kind)
	if kind ~= "Control" then
		say(kind)
	end
	return dissect_message(payload, t, kind, 0)
end

-- ---- messages of LNet ----

-- Fields of the union in the message: { name, offset in the union, size }.
local handle = { { "wmd_node", 0, 8 }, { "wmd_object", 8, 8 } }
local unions = {
	[ACK] = { { "match_bits", 16, 8 }, { "mlength", 24, 4 } },
	[PUT] = { { "match_bits", 16, 8 }, { "hdr_data", 24, 8 },
		{ "portal", 32, 4 }, { "offset", 36, 4 } },
	[GET] = { { "match_bits", 16, 8 }, { "portal", 24, 4 },
		{ "offset", 28, 4 }, { "sink_length", 32, 4 } },
	[REPLY] = {},
}

local function dissect_payload(buf, kind, union, tree)
	if kind == PUT and dissect_rpc(union(24, 8), buf, tree) then
		return
	end
	if kind ~= PUT and kind ~= REPLY or not dissect_info(buf, tree) then
		tree:add(f.payload, buf)
	end
end

local function dissect_lnet(buf, tree)
	local large = is_large(buf)
	local nid = large and 20 or 8
	local text = large and large_text or nid4_text
	local at = 2 * nid
	local dest, src = text(buf(0, nid), true), text(buf(nid, nid), true)
	local kind = buf(at + 8, 4):le_uint()
	local union = buf(at + 16, 40)

	tree:add(f.dest_nid, buf(0, nid), dest)
	tree:add(f.src_nid, buf(nid, nid), src)
	tree:add_le(f.dest_pid, buf(at, 4))
	tree:add_le(f.src_pid, buf(at + 4, 4))
	local t = tree:add_le(f.type, buf(at + 8, 4))
	tree:add_le(f.payload_length, buf(at + 12, 4))
	tree:append_text(string.format(", %s %s > %s",
		msg_types[kind] or "?", src, dest))
	say(msg_types[kind] or "type " .. kind)
	if not unions[kind] then
		t:add_proto_expert_info(e.bad)
		return
	end
	for _, fields in ipairs({ handle, unions[kind] }) do
		for _, one in ipairs(fields) do
			tree:add_le(f[one[1]], union(one[2], one[3]))
		end
	end
	if buf:len() > at + 56 then
		dissect_payload(buf(at + 56), kind, union, tree)
	end
end

local function dissect_ksm(buf, tree, le)
	local kind = u32(buf(0, 4), le)

	add(tree, f.ksm_type, buf(0, 4), le)
	add(tree, f.csum, buf(4, 4), le)
	add(tree, f.zc_cookie, buf(8, 8), le)
	add(tree, f.ack_cookie, buf(16, 8), le)
	if kind == LNET then
		dissect_lnet(buf(KSM_SIZE), tree)
		return
	end
	local one = le and buf(16, 8):le_uint64() or buf(16, 8):uint64()
	local alive = one == UInt64.new(1)

	tree:add(f.keepalive, buf(16, 8), alive)
	tree:append_text(alive and ", keepalive" or ", NOOP")
	say(alive and "keepalive" or "NOOP")
end

local dissectors = {
	[MAGIC_REQUEST] = dissect_request,
	[MAGIC_HELLO] = dissect_hello,
	[NOOP] = dissect_ksm,
	[LNET] = dissect_ksm,
}

-- ---- the stream ----

local function unknown(buf, root)
	local tree = root:add(lnet, buf)

	tree:append_text(", not the beginning of a frame")
	tree:add_proto_expert_info(e.unknown)
	say("?")
end

-- The size of the frame that begins @buf. Or nil, and how many bytes are needed
-- to tell; nil and nil: no frame begins there.
local function frame_size(buf)
	if buf:len() < 4 then
		return nil, 4
	end
	local magic, le = begins(buf)

	if not magic then
		return nil
	end
	local size, need = sizes[magic](buf, le)

	if size == 0 then
		return nil
	end
	return size, need
end

local function dissect_stream(tvb, pinfo, root)
	local at, len = 0, tvb:captured_len()
	local cut = len < tvb:reported_len()

	while at < len do
		local buf = tvb(at, len - at)
		local size, need = frame_size(buf)

		need = size or need
		if not need then
			unknown(buf, root)
			return
		end
		if need > len - at then
			if cut or not pinfo.can_desegment or
					pinfo.can_desegment == 0 then
				unknown(buf, root)
				return
			end
			pinfo.desegment_offset = at
			pinfo.desegment_len = size and need - (len - at) or
				DESEGMENT_ONE_MORE_SEGMENT
			return
		end
		local magic, le = begins(buf)
		local frame = tvb(at, size)

		dissectors[magic](frame, root:add(lnet, frame), le)
		at = at + size
	end
end

function lnet.dissector(tvb, pinfo, root)
	column = {}
	pinfo.cols.protocol = "ULNET"
	dissect_stream(tvb, pinfo, root)
	if #column > 0 then
		pinfo.cols.info = table.concat(column, ", ")
	end
	return tvb:captured_len()
end

-- ---- where it is looked for ----

local tcp_ports = DissectorTable.get("tcp.port")
local ports = lnet.prefs.ports
tcp_ports:add(ports, lnet)

function lnet.prefs_changed()
	if ports ~= lnet.prefs.ports then
		tcp_ports:remove(ports, lnet)
		ports = lnet.prefs.ports
		tcp_ports:add(ports, lnet)
	end
end
