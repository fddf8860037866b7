//! A program under test or beside it: started with its output in a file, stopped when dropped.
//!
//! Only processes started here are ever signalled, each through its own handle or process id
//! while that handle keeps the id from being used again.

use std::fs::{self, File};
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// How often a condition is looked at again.
const POLL: Duration = Duration::from_millis(50);

/// A running program.
pub(crate) struct Program {
    name: String,
    child: Child,
    output: PathBuf,
}

impl Program {
    /// Starts `command`; standard output goes to `<name>.out` and the rest to `<name>.err` in
    /// `folder`.
    pub(crate) fn start(name: &str, folder: &Path, command: &mut Command) -> Self {
        let open = |extension: &str| {
            File::create(folder.join(format!("{name}.{extension}"))).expect("the folder is ours")
        };
        let child = command
            .stdin(Stdio::null())
            .stdout(open("out"))
            .stderr(open("err"))
            .spawn()
            .unwrap_or_else(|error| panic!("`{name}` cannot be started: {error}: {command:?}"));
        Self {
            name: name.to_owned(),
            child,
            output: folder.join(name),
        }
    }

    /// Process id, valid until the program is waited for.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The file its standard output goes to.
    pub(crate) fn stdout_file(&self) -> PathBuf {
        self.output.with_extension("out")
    }

    /// What it wrote to standard output so far.
    pub(crate) fn stdout(&self) -> String {
        fs::read_to_string(self.stdout_file()).unwrap_or_default()
    }

    /// What it wrote to standard error so far.
    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(self.output.with_extension("err")).unwrap_or_default()
    }

    /// The end of all it wrote, for the message of a failed test.
    fn last_words(&self) -> String {
        let all = self.stdout() + &self.stderr();
        let lines: Vec<&str> = all.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }

    /// Waits until `look` finds something, at most `within`.
    ///
    /// # Panics
    ///
    /// If the time is up or the program has ended, with what it wrote.
    pub(crate) async fn until<T, F>(&mut self, what: &str, within: Duration, look: F) -> T
    where
        F: AsyncFnMut() -> Option<T>,
    {
        let mut look = look;
        let deadline = Instant::now() + within;
        loop {
            if let Some(found) = look().await {
                return found;
            }
            let ended = self.child.try_wait().expect("it is our child");
            assert!(
                ended.is_none(),
                "`{}` ended ({ended:?}) before {what}:\n{}",
                self.name,
                self.last_words()
            );
            assert!(
                Instant::now() < deadline,
                "`{}`: no {what} within {within:?}:\n{}",
                self.name,
                self.last_words()
            );
            sleep(POLL).await;
        }
    }

    /// Asks it to stop, as a service manager would, and waits for its end.
    ///
    /// # Panics
    ///
    /// If it does not end `within`.
    pub(crate) async fn terminate(&mut self, within: Duration) -> ExitStatus {
        self.signal("TERM");
        self.ended(within).await
    }

    /// Sends the signal called `name`, as `INT`.
    ///
    /// # Panics
    ///
    /// If it has ended.
    pub(crate) fn signal(&self, name: &str) {
        let told = Command::new("kill")
            .args(["-s", name, &self.pid().to_string()])
            .status()
            .expect("`kill` is on every Unix");
        assert!(told.success(), "`{}` had ended already", self.name);
    }

    /// Waits for its end.
    ///
    /// # Panics
    ///
    /// If it does not come `within`.
    pub(crate) async fn ended(&mut self, within: Duration) -> ExitStatus {
        let deadline = Instant::now() + within;
        loop {
            if let Some(status) = self.child.try_wait().expect("it is our child") {
                return status;
            }
            assert!(
                Instant::now() < deadline,
                "`{}` did not stop within {within:?}:\n{}",
                self.name,
                self.last_words()
            );
            sleep(POLL).await;
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Either fails only if it has ended, which is what is wanted.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Says what was seen, for the evidence that `tests/real` keeps.
#[expect(clippy::print_stderr, reason = "nextest shows it where it is asked to")]
pub(crate) fn tell(seen: &str) {
    eprintln!("seen: {seen}");
}

/// An empty folder below `target` for the files of the test called `name`; kept for reading
/// after a failure, emptied at the next run.
pub(crate) fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("the folder is ours");
    }
    fs::create_dir_all(&folder).expect("target can be written to");
    folder
}

/// A loopback address that nothing listens on at this moment, for programs that cannot be told
/// to pick one.
pub(crate) fn free_address() -> SocketAddr {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .expect("loopback has free ports")
}

/// Makes a client for the tests' own requests.
pub(crate) fn http_client() -> reqwest::ClientBuilder {
    // Fails only if another test of this process has done it already.
    drop(rustls::crypto::ring::default_provider().install_default());
    reqwest::Client::builder().no_proxy()
}

/// The body of a successful `GET`, or `None`.
pub(crate) async fn get(url: &str) -> Option<String> {
    let response = http_client()
        .timeout(Duration::from_secs(10))
        .build()
        .expect("the options are fixed")
        .get(url)
        .send();
    body(response).await
}

async fn body<F>(response: F) -> Option<String>
where
    F: Future<Output = reqwest::Result<reqwest::Response>>,
{
    response
        .await
        .ok()?
        .error_for_status()
        .ok()?
        .text()
        .await
        .ok()
}

/// The binary under test.
pub(crate) fn tokencanary() -> Command {
    Command::new(env!("CARGO_BIN_EXE_tokencanary"))
}

/// Whether golden files are to be written anew.
pub(crate) fn blessing() -> bool {
    #[expect(
        clippy::disallowed_methods,
        reason = "the tests' own setting, not the product's"
    )]
    let given = std::env::var("TOKENCANARY_BLESS");
    given.is_ok_and(|given| given == "1")
}
