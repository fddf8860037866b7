//! Behind a real nginx: TLS, client certificates, HTTP/2, and its buffering of streams.
//!
//! The simulator runs in this process and nginx in front of it, with certificates made on the
//! spot.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use tokencanary::client::{Call, Cancel, Client, ClientSetup, Protocol};
use tokencanary::clock::TimeAnchor;
use tokencanary::config::{BaseUrl, HttpVersion, Limits, NetworkConfig, RequestConfig, TlsConfig};
use tokencanary::load::workload::Prompt;
use tokencanary::measurement::{
    Api, CacheMode, ClockSource, ConnectionPolicy, LengthMode, Note, Outcome, RequestRecord,
    Stream, StreamId, TraceIds,
};
use tokencanary::simulator::{Profile, Simulator, SimulatorConfig};
use tokencanary::transport::{Endpoint, TcpConnect};
use tokio::net::{TcpListener, TcpStream};

use super::super::components::component;
use crate::program::{Program, free_address, scratch, tell};

const START: Duration = Duration::from_secs(30);
const TTFT: Duration = Duration::from_millis(200);
const ITL: Duration = Duration::from_millis(20);
const TOKENS: u32 = 20;
/// 2030-12-31 in seconds of Unix time.
const END_OF_2030: i64 = 1_924_905_600;

/// nginx in front of a simulator.
struct Nginx {
    _program: Program,
    folder: PathBuf,
    /// TLS with HTTP/1.1 and HTTP/2 on offer.
    tls: SocketAddr,
    /// The same for those with a certificate only.
    mutual: SocketAddr,
    /// Plain, streams passed on at once.
    plain: SocketAddr,
    /// Plain, with nginx's buffering of answers, as it does it by itself.
    buffering: SocketAddr,
    /// The same where nginx asks the simulator by HTTP/1.1.
    chunked: SocketAddr,
}

/// Writes the authority, and certificates of `server` and `client` that it signed.
fn write_certificates(folder: &Path) {
    let write = |name: &str, text: &str| {
        std::fs::write(folder.join(name), text).expect("the folder is ours");
    };
    // OpenSSL takes a certificate whose subject is its issuer's for a self-signed one, so each
    // has a name of its own.
    let named = |params: &mut CertificateParams, name: &str| {
        params.distinguished_name.push(DnType::CommonName, name);
    };
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    named(&mut params, "authority.test");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority = params.self_signed(&key).expect("signed");
    write("ca.pem", &authority.pem());
    let issuer = Issuer::new(params, key);
    for (name, purpose) in [
        ("server", ExtendedKeyUsagePurpose::ServerAuth),
        ("client", ExtendedKeyUsagePurpose::ClientAuth),
    ] {
        let key = KeyPair::generate().expect("a key");
        let host = format!("{name}.test");
        let mut params = CertificateParams::new(vec![host.clone()]).expect("a name");
        named(&mut params, &host);
        params.use_authority_key_identifier_extension = true;
        params.extended_key_usages = vec![purpose];
        params.not_after = date_time_ymd(2030, 12, 31);
        let certificate = params.signed_by(&key, &issuer).expect("signed");
        write(&format!("{name}.pem"), &certificate.pem());
        write(&format!("{name}.key"), &key.serialize_pem());
    }
}

/// The simulator on a port of its own, for as long as the test's runtime.
async fn simulator() -> SocketAddr {
    let profile = Profile::fixed(TTFT, ITL);
    let simulator =
        Simulator::new(SimulatorConfig::new(profile), TimeAnchor::start()).expect("no log file");
    let engine = simulator.clone();
    tokio::spawn(async move { engine.run().await });
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .expect("loopback has free ports");
    let address = listener.local_addr().expect("it is bound");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let simulator = simulator.clone();
            tokio::spawn(async move { simulator.serve_connection(stream).await });
        }
    });
    address
}

impl Nginx {
    async fn start(name: &str) -> Self {
        let folder = scratch(name);
        write_certificates(&folder);
        let upstream = simulator().await;
        let [tls, mutual, plain, buffering, chunked] = std::array::from_fn(|_| free_address());
        let here = folder.display();
        let certificate =
            format!("ssl_certificate {here}/server.pem; ssl_certificate_key {here}/server.key;");
        let pass = |how: &str| format!("location / {{ proxy_pass http://{upstream}; {how} }}");
        let off = pass("proxy_http_version 1.1; proxy_buffering off;");
        // Buffers that are not full are held back only where the upstream speaks HTTP/1.0, which
        // is what nginx asks for by itself: chunks of HTTP/1.1 are passed on as they come.
        let on = pass("proxy_buffer_size 16k; proxy_buffers 8 16k;");
        let chunked_pass =
            pass("proxy_http_version 1.1; proxy_buffer_size 16k; proxy_buffers 8 16k;");
        let config = format!(
            "daemon off; master_process off; pid {here}/nginx.pid; error_log stderr;\n\
             events {{}}\n\
             http {{ access_log off; client_body_temp_path {here}/b; proxy_temp_path {here}/p;\n\
             fastcgi_temp_path {here}/f; uwsgi_temp_path {here}/u; scgi_temp_path {here}/s;\n\
             server {{ listen {tls} ssl http2; {certificate} {off} }}\n\
             server {{ listen {mutual} ssl; {certificate} ssl_verify_client on; \
             ssl_client_certificate {here}/ca.pem; {off} }}\n\
             server {{ listen {plain}; {off} }}\n\
             server {{ listen {buffering}; {on} }}\n\
             server {{ listen {chunked}; {chunked_pass} }} }}\n"
        );
        let file = folder.join("nginx.conf");
        std::fs::write(&file, config).expect("the folder is ours");
        let binary = component("TOKENCANARY_NGINX");
        // Its libraries lie beside it where the machine has none.
        let root = Path::new(&binary)
            .ancestors()
            .nth(3)
            .expect("below usr/sbin");
        let mut command = Command::new(&binary);
        command
            .env("LD_LIBRARY_PATH", root.join("usr/lib/x86_64-linux-gnu"))
            .arg("-p")
            .arg(&folder)
            .arg("-c")
            .arg(&file);
        let mut program = Program::start("nginx", &folder, &mut command);
        for address in [tls, mutual, plain, buffering, chunked] {
            program
                .until("open port", START, async || {
                    TcpStream::connect(address).await.ok()
                })
                .await;
        }
        Self {
            _program: program,
            folder,
            tls,
            mutual,
            plain,
            buffering,
            chunked,
        }
    }

    /// Trust in its authority, and perhaps our own certificate.
    fn network(&self, http: HttpVersion, client: Option<&str>) -> NetworkConfig {
        let file = |name: String| self.folder.join(name);
        NetworkConfig {
            http,
            tls: TlsConfig {
                ca: Some(file("ca.pem".to_owned())),
                cert: client.map(|name| file(format!("{name}.pem"))),
                key: client.map(|name| file(format!("{name}.key"))),
                server_name: Some("server.test".to_owned()),
            },
            ..NetworkConfig::default()
        }
    }
}

/// Two requests, one after the other.
async fn ask(url: String, network: NetworkConfig) -> [RequestRecord; 2] {
    let anchor = TimeAnchor::start();
    let parsed = BaseUrl::parse(&url).expect("a good URL");
    let client = Client::new(ClientSetup {
        endpoint: Endpoint::new(parsed, network).expect("good files"),
        protocol: Protocol::new(Api::Chat, RequestConfig::default()).expect("no body"),
        headers: hyper::HeaderMap::new(),
        limits: Limits::PROBE,
        connect: Arc::new(TcpConnect),
        anchor,
    })
    .expect("a good path");
    let stream = Arc::new(Stream {
        id: StreamId(0),
        target_index: 0,
        target: "nginx".into(),
        endpoint: url.into(),
        probe: "p".into(),
        api: Api::Chat,
        cache: CacheMode::Cold,
        connection: ConnectionPolicy::Pooled,
        length: LengthMode::Exact,
        streaming: true,
        closed_loop: false,
        model: OnceLock::new(),
    });
    let send = async || {
        let ids = TraceIds { trace: 1, span: 2 };
        let record = RequestRecord::due(0, Arc::clone(&stream), ids, anchor.now());
        let prompt = Prompt {
            text: "one two three".into(),
            input_tokens: Some(3),
            output_tokens: Some(TOKENS),
            ..Prompt::default()
        };
        let call = Call::new(record, prompt);
        *client.send(call, &Cancel::default()).await
    };
    [send().await, send().await]
}

/// An undisturbed stream at the engine's pace, by the kernel's clock.
fn assert_paced(record: &RequestRecord) {
    assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
    assert_eq!(record.clock, ClockSource::Kernel);
    assert!(!record.notes.has(Note::Buffered));
    assert_eq!(record.tokens.output, Some(TOKENS));
    let ttft = record.ttft().expect("a token came");
    assert!(
        ttft >= TTFT && ttft < TTFT + Duration::from_millis(100),
        "{ttft:?}"
    );
    let itl = record.itl().expect("several tokens came");
    assert!(itl > ITL / 2 && itl < ITL * 2, "{itl:?}");
}

#[tokio::test]
async fn nginx_with_tls_is_measured_in_http1_and_http2() {
    let nginx = Nginx::start("nginx_tls").await;
    for http in [HttpVersion::Http1, HttpVersion::Http2, HttpVersion::Auto] {
        let url = format!("https://{}", nginx.tls);
        let [first, second] = ask(url, nginx.network(http, None)).await;
        assert_paced(&first);
        assert_paced(&second);
        assert_eq!(
            (first.reused, second.reused),
            (Some(false), Some(true)),
            "{http:?}"
        );
        assert!(first.timeline.tls_done.is_some());
        assert_eq!(first.certificate_expiry, Some(END_OF_2030));
    }
}

#[tokio::test]
async fn nginx_that_wants_a_certificate_gets_ours() {
    let nginx = Nginx::start("nginx_mutual").await;
    let url = format!("https://{}", nginx.mutual);
    let known = nginx.network(HttpVersion::Http1, Some("client"));
    for record in ask(url.clone(), known).await {
        assert_paced(&record);
    }
    // nginx lets strangers shake hands and refuses what they ask.
    let [stranger, _] = ask(url, nginx.network(HttpVersion::Http1, None)).await;
    assert_eq!(stranger.outcome, Outcome::HttpStatus);
    assert_eq!(stranger.http_status, Some(400));
    let message = stranger.error.expect("it says why").message;
    assert!(message.contains("certificate"), "{message}");
}

#[tokio::test]
async fn nginx_that_buffers_is_found_out() {
    let nginx = Nginx::start("nginx_buffering").await;
    let plainly = async |address: SocketAddr| {
        ask(format!("http://{address}"), NetworkConfig::default()).await
    };
    for address in [nginx.plain, nginx.chunked] {
        for record in plainly(address).await {
            assert_paced(&record);
        }
    }
    // The engine's last token, which nginx waited for: 19 gaps after the first.
    let end = TTFT + ITL * 19;
    for record in plainly(nginx.buffering).await {
        assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
        assert_eq!(record.tokens.output, Some(TOKENS));
        assert!(record.notes.has(Note::Buffered), "{:?}", record.chunks);
        assert!(!record.feeds_verdict());
        assert_eq!(record.itl(), None);
        let first = record.ttft().expect("a token came");
        assert!(first >= end, "{first:?}");
        tell(&format!(
            "buffered: {} chunks within {:?} after {first:?}",
            record.chunks.len(),
            record.chunks.gaps().sum::<Duration>()
        ));
    }
}
