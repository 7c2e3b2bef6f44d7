package doctorcmd

// A remedy holds what solves a problem: the settings of a proxy, or a statement for PostgreSQL.
type remedy struct {
	Program  string `json:"program"`
	Settings string `json:"settings"`
}

// proxies are the names of the proxies whose settings are known.
var proxies = []string{"nginx", "HAProxy", "Caddy", "Envoy", "Traefik", "Apache", "lighttpd", "Varnish"}

// untested marks settings that the tests of this project do not cover.
const untested = " (from its documentation, not tested here)"

// Each list holds the settings that solve one problem. It has one element for each proxy, in the
// order of proxies.
var (
	noBuffering = []string{
		"proxy_buffering off; and no proxy_ignore_headers X-Accel-Buffering;",
		"no http-response wait-for-body, and no filter that collects responses",
		"flush_interval -1 in reverse_proxy; no response_buffers",
		"no buffer filter in http_filters" + untested,
		"no buffering middleware on this router" + untested,
		"ProxyPass … flushpackets=on; no SetOutputFilter for this path" + untested,
		"server.stream-response-body = 2" + untested,
		"set beresp.do_stream = true; or return (pipe) for watches" + untested,
	}
	noCompression = []string{
		"gzip off; or leave the type application/json out of gzip_types",
		"nothing: HAProxy does not compress responses with no-transform",
		"no encode directive for this path",
		"no compressor filter for this route" + untested,
		"no compress middleware on this router, or excludedContentTypes: [application/json]" + untested,
		"SetEnv no-gzip 1, or no AddOutputFilterByType DEFLATE application/json" + untested,
		"no application/json in deflate.mimetypes" + untested,
		"no set beresp.do_gzip = true" + untested,
	}
	longIdle = []string{
		"proxy_read_timeout 1h; (also send_timeout 1h;)",
		"timeout server 1h\ntimeout client 1h\ntimeout tunnel 1h",
		"no read_timeout and write_timeout in transport http of reverse_proxy; servers { timeouts { idle 1h } }",
		"route: timeout: 0s, idle_timeout: 1h; http_connection_manager: stream_idle_timeout: 0s" + untested,
		"entryPoints.NAME.transport.respondingTimeouts: readTimeout: 0, writeTimeout: 0, idleTimeout: 1h" + untested,
		"ProxyPass … timeout=3600; ProxyTimeout 3600" + untested,
		"server.max-write-idle = 3600; proxy.server: read-timeout 3600" + untested,
		"backend: .between_bytes_timeout = 1h, .first_byte_timeout = 1h; pipe_timeout 1h" + untested,
	}
	forwardUpgrade = []string{
		"proxy_http_version 1.1;\nproxy_set_header Upgrade $http_upgrade;\nproxy_set_header Connection $http_connection;",
		"no http-request del-header of Upgrade and Connection; mode http; timeout tunnel 1h",
		"no header_up -Upgrade, header_up -Connection in reverse_proxy",
		"upgrade_configs: [{upgrade_type: websocket}] in http_connection_manager" + untested,
		"no headers middleware that removes Upgrade or Connection" + untested,
		"ProxyPass … upgrade=websocket" + untested,
		"proxy.header = (\"upgrade\" => \"enable\")" + untested,
		"if (req.http.upgrade) { return (pipe); } in vcl_recv, and set bereq.http.upgrade in vcl_pipe" + untested,
	}
	largeHeaders = []string{
		"large_client_header_buffers 4 64k;",
		"tune.bufsize 98304\ntune.maxrewrite 16384",
		"servers { max_header_size 64KB }",
		"max_request_headers_kb: 64 in http_connection_manager" + untested,
		"entryPoints.NAME.http.maxHeaderBytes: 65536" + untested,
		"LimitRequestFieldSize 65536" + untested,
		"server.max-request-field-size = 65536" + untested,
		"param http_req_hdr_len 64k, http_req_size 96k, workspace_client 256k" + untested,
	}
	oneHopHTTP2 = []string{
		"nginx has no HTTP/2 to servers; raise worker_connections instead: two for each watch",
		"server NAME ADDRESS proto h2 (clear text), or ssl alpn h2",
		"reverse_proxy h2c://ADDRESS, or transport http { versions h2c 2 }",
		"http2_protocol_options: {} of the cluster" + untested,
		"url: h2c://ADDRESS of the server" + untested,
		"ProxyPass / h2c://ADDRESS (mod_proxy_http2)" + untested,
		"lighttpd has no HTTP/2 to servers" + untested,
		"Varnish has no HTTP/2 to servers" + untested,
	}
	keepHost = []string{
		"proxy_set_header Host $http_host;",
		"no http-request set-header Host",
		"no header_up Host in reverse_proxy",
		"no host_rewrite_literal and auto_host_rewrite in the route" + untested,
		"passHostHeader: true of the service" + untested,
		"ProxyPreserveHost On" + untested,
		"no host-rewrite in proxy.header" + untested,
		"no set bereq.http.host, and no .host_header of the backend" + untested,
	}
	oneHopHTTP1 = []string{
		"proxy_http_version 1.1;",
		"server NAME ADDRESS (without proto h2), or server NAME ADDRESS proto h2 ws h1",
		"reverse_proxy http://ADDRESS, without versions h2c",
		"no http2_protocol_options of the cluster" + untested,
		"url: http://ADDRESS of the server" + untested,
		"ProxyPass / http://ADDRESS upgrade=websocket" + untested,
		"nothing: lighttpd has no HTTP/2 to servers",
		"nothing: Varnish has no HTTP/2 to servers",
	}
)

// remedies returns the settings for the proxy in use, or for all proxies if it is unknown.
func (e *examination) remedies(settings []string) (list []remedy) {
	for i, p := range proxies {
		if e.proxy == "" || e.proxy == p {
			list = append(list, remedy{p, settings[i]})
		}
	}
	return list
}
