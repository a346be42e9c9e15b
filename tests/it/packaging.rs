//! `packaging/`: what it says of settings, exit codes, times and places is so.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use yaml_rust2::{Yaml, YamlLoader};

/// What closing may take after `SHUTDOWN_TIMEOUT_S`, in seconds: leaving the gateway (5), taking back
/// what abandoned turns posted (5), other sending (2), three last tries of a store (10 each), closing it (10).
const CLOSING_S: u64 = 55;
/// Variables in the packages that others read.
const NOT_OURS: [&str; 1] = ["SQLITE_TMPDIR"];

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn read(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap()
}

fn yaml(name: &str) -> Yaml {
    yamls(name).remove(0)
}

fn yamls(name: &str) -> Vec<Yaml> {
    YamlLoader::load_from_str(&read(name)).unwrap()
}

/// The names and defaults of all settings.
fn settings() -> Vec<(String, String)> {
    let example = read(".env.example");
    let lines = example.lines().filter_map(|line| line.strip_prefix('#'));
    let pairs = lines.filter_map(|line| line.split_once('='));
    let pairs = pairs.filter(|(name, _)| {
        name.bytes()
            .all(|byte| byte == b'_' || byte.is_ascii_uppercase())
    });
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// What follows a key in the unit, each time it is there.
fn in_unit(key: &str) -> Vec<String> {
    let unit = read("packaging/clew.service");
    let values = unit
        .lines()
        .filter_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    values.map(str::to_owned).collect()
}

fn seconds(text: &str) -> u64 {
    text.strip_suffix('s').unwrap().parse().unwrap()
}

#[test]
fn settings_that_packages_name_exist() {
    let container = read("packaging/Containerfile");
    let set = container
        .lines()
        .filter_map(|line| line.strip_prefix("ENV ")?.split_once('='));
    let mut named: BTreeSet<String> = set.map(|(name, _)| name.to_owned()).collect();
    let compose = yaml("packaging/compose.yaml");
    let environment = compose["services"]["bot"]["environment"].as_hash().unwrap();
    named.extend(
        environment
            .keys()
            .map(|key| key.as_str().unwrap().to_owned()),
    );
    let readme = read("packaging/README.md");
    for word in readme.split(|c: char| !c.is_ascii_uppercase() && c != '_') {
        if ["DISCORD_", "LLM_", "SHUTDOWN_"]
            .iter()
            .any(|start| word.starts_with(start))
        {
            named.insert(word.to_owned());
        }
    }
    assert!(named.len() > 6, "{named:?}");
    let known: BTreeSet<String> = settings().into_iter().map(|(name, _)| name).collect();
    for name in named {
        assert!(
            known.contains(&name) || NOT_OURS.contains(&&*name),
            "{name}"
        );
    }
}

#[test]
fn the_bot_has_the_time_to_stop() {
    let default = settings()
        .into_iter()
        .find(|(name, _)| name == "SHUTDOWN_TIMEOUT_S");
    let least = default.unwrap().1.parse::<u64>().unwrap() + CLOSING_S;
    let compose = yaml("packaging/compose.yaml");
    let grace = compose["services"]["bot"]["stop_grace_period"]
        .as_str()
        .unwrap();
    let [stop] = in_unit("TimeoutStopSec").try_into().unwrap();
    assert_eq!([seconds(grace), seconds(&stop)], [least; 2]);
    assert!(read("packaging/README.md").contains(&format!("--stop-timeout {least} ")));
}

/// Several processes: each with a folder of its own, the time to stop, and settings that exist.
#[test]
fn several_processes_are_a_cluster() {
    let known = settings();
    let bot = &yaml("packaging/compose.cluster.yaml")["services"]["bot"];
    assert_eq!(bot["environment"]["CLUSTER"].as_str(), Some("on"));
    let home = yaml("packaging/compose.yaml")["services"]["bot"]["volumes"][0].clone();
    let (_, home) = home.as_str().unwrap().split_once(':').unwrap();
    assert_eq!(
        bot["volumes"][0].as_str(),
        Some(home),
        "no name: not shared"
    );
    let manifests = yamls("packaging/kubernetes.yaml");
    let kinds: Vec<_> = manifests
        .iter()
        .map(|one| one["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["Deployment", "PodDisruptionBudget"]);
    let pod = &manifests[0]["spec"]["template"];
    for labels in [
        &manifests[0]["spec"]["selector"]["matchLabels"],
        &manifests[1]["spec"]["selector"]["matchLabels"],
    ] {
        assert_eq!(labels, &pod["metadata"]["labels"]);
    }
    let grace = pod["spec"]["terminationGracePeriodSeconds"]
        .as_i64()
        .unwrap();
    let [stop] = in_unit("TimeoutStopSec").try_into().unwrap();
    assert_eq!(grace.unsigned_abs(), seconds(&stop));
    let container = &pod["spec"]["containers"][0];
    let env: Vec<_> = container["env"].as_vec().unwrap().iter().collect();
    for variable in &env {
        let name = variable["name"].as_str().unwrap();
        assert!(known.iter().any(|(of, _)| of == name), "{name}");
    }
    assert!(
        env.iter()
            .any(|one| one["name"].as_str() == Some("CLUSTER"))
    );
    let mounted = container["volumeMounts"][0]["mountPath"].as_str();
    assert_eq!(mounted, Some(home), "its root is read-only");
}

/// Without a token, which only a person can give.
#[test]
fn what_only_a_person_can_mend_is_not_restarted() {
    let folder = tempfile::tempdir().unwrap();
    let ended = Command::new(env!("CARGO_BIN_EXE_clew"))
        .arg("run")
        .current_dir(folder.path())
        .env_clear()
        .output()
        .unwrap();
    let code = ended.status.code().unwrap();
    assert_eq!(in_unit("RestartPreventExitStatus"), [code.to_string()]);
    assert_eq!(in_unit("Restart"), ["on-failure"]);
}

/// Where the unit starts it, the bot finds `.env` and may write.
#[test]
fn the_unit_runs_the_bot_in_its_own_folder() {
    let [state] = in_unit("StateDirectory").try_into().unwrap();
    let [folder] = in_unit("WorkingDirectory").try_into().unwrap();
    assert_eq!(folder, format!("/var/lib/{state}"));
    let [user] = in_unit("User").try_into().unwrap();
    let line = format!("u {user} - \"Clew\" {folder}");
    assert!(
        read("packaging/clew.sysusers")
            .lines()
            .any(|found| found == line)
    );
    assert_eq!(in_unit("ProtectSystem"), ["strict"]);
    let container = read("packaging/Containerfile");
    for line in ["WORKDIR", "VOLUME"] {
        assert!(
            container.contains(&format!("\n{line} {folder}\n")),
            "{line}"
        );
    }
    // What the bot writes by default is below the folder that it runs in.
    for (name, value) in settings() {
        let is_place = name.ends_with("_DIR") || name == "CONTEXT_STORE";
        assert!(
            !is_place || !value.contains(":/") && !value.starts_with('/'),
            "{name}"
        );
    }
}

#[test]
fn the_container_is_built_as_the_program_is() {
    let container = read("packaging/Containerfile");
    let manifest = read("Cargo.toml");
    let (_, rust) = manifest.split_once("\nrust-version = \"").unwrap();
    let (rust, _) = rust.split_once('"').unwrap();
    assert!(
        container.contains(&format!("/rust:{rust}.0-slim-")),
        "{rust}"
    );
    assert!(container.contains("CMD [\"/usr/local/bin/clew\", \"health\"]"));
    let user = container
        .lines()
        .filter_map(|line| line.strip_prefix("USER "));
    assert_eq!(user.collect::<Vec<_>>(), ["65532:65532"], "not root");
    for kept in read(".dockerignore")
        .lines()
        .filter_map(|line| line.strip_prefix('!'))
    {
        assert!(path(kept).exists(), "{kept}");
    }
}

#[test]
fn the_bot_of_compose_may_write_to_its_volume_alone_and_waits_for_its_database() {
    let compose = yaml("packaging/compose.yaml");
    let bot = &compose["services"]["bot"];
    assert_eq!(bot["read_only"].as_bool(), Some(true));
    assert_eq!(bot["cap_drop"][0].as_str(), Some("ALL"));
    let file = bot["build"]["dockerfile"].as_str().unwrap();
    assert!(path(file).exists());
    let waits = bot["depends_on"]["database"]["condition"].as_str();
    assert_eq!(waits, Some("service_healthy"));
    let database = &compose["services"]["database"];
    assert!(database["ports"].is_badvalue(), "nobody else reaches it");
    let mounted = database["volumes"][1].as_str().unwrap();
    let (folder, _) = mounted.split_once(':').unwrap();
    let scripts = path("packaging").join(folder).read_dir().unwrap();
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
    let scripts: BTreeSet<_> = scripts.map(name).collect();
    let scripts: Vec<_> = scripts.iter().map(|name| name.to_str().unwrap()).collect();
    assert_eq!(
        scripts,
        ["10-clew.sql", "20-password.sql"],
        "run in this order"
    );
}

/// Of both workflows, so that nobody else's new version runs in them.
#[test]
fn actions_are_pinned_by_commit() {
    let workflows = ["ci", "release"].map(|name| read(&format!(".github/workflows/{name}.yml")));
    let lines = workflows.iter().flat_map(|workflow| workflow.lines());
    let uses = lines.filter_map(|line| line.trim().strip_prefix("- uses: "));
    let uses: Vec<&str> = uses.collect();
    assert_eq!(uses.len(), 4);
    for action in uses {
        let (_, pin) = action.split_once('@').unwrap();
        let (commit, version) = pin.split_once(" # v").unwrap();
        assert!(
            commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()),
            "{action}"
        );
        assert!(!version.is_empty());
    }
}

#[test]
fn releases_are_built_for_the_targets_whose_licences_are_checked() {
    let parsed = yaml(".github/workflows/release.yml");
    let matrix = &parsed["jobs"]["build"]["strategy"]["matrix"]["include"];
    let targets = matrix
        .as_vec()
        .unwrap()
        .iter()
        .map(|build| build["target"].as_str().unwrap());
    let deny = read("deny.toml");
    for target in targets {
        assert!(deny.contains(&format!("\"{target}\"")), "{target}");
    }
    assert_eq!(parsed["permissions"]["contents"].as_str(), Some("read"));
}

/// What is to be typed works where it is typed: cron's path is short, the bot's folder
/// its own, and no file is overwritten.
#[test]
fn the_commands_of_the_readme_work_where_they_are_typed() {
    let readme = read("packaging/README.md");
    let [start] = in_unit("ExecStart").try_into().unwrap();
    let (program, _) = start.split_once(' ').unwrap();
    let [folder] = in_unit("WorkingDirectory").try_into().unwrap();
    let enters = format!("cd {folder} && {program} ");
    let entering: Vec<&str> = readme
        .lines()
        .filter(|line| line.contains("cd /"))
        .collect();
    assert_eq!(entering.len(), 3, "{entering:?}");
    for line in entering {
        let by_its_user = [
            format!("sudo -u clew sh -c '{enters}"),
            format!(" * * * clew {enters}"),
        ];
        assert!(by_its_user.iter().any(|way| line.contains(way)), "{line}");
    }
    let backups = readme
        .lines()
        .filter(|line| line.contains(" store backup "));
    let backups: Vec<&str> = backups.collect();
    assert_eq!(backups.len(), 2);
    for line in backups {
        let (_, to) = line.split_once(" store backup \"").unwrap();
        let (folder, date) = to.split_once("/$(date +").unwrap();
        assert!(date.starts_with("%F") || date.starts_with("\\%F"), "{line}");
        let is_there = format!("-m 700 {folder}\n");
        let is_mounted = format!(":{folder}\"");
        assert!(
            readme.contains(&is_there) || line.contains(&is_mounted),
            "{line}"
        );
    }
    // The image's entry point is the program, and it has no shell.
    assert!(read("packaging/Containerfile").contains(&format!("ENTRYPOINT [\"{program}\"]")));
    // Before the secrets are written.
    let (umask, secrets) = (readme.find("\numask 077"), readme.find("> .env\n"));
    assert!(umask.is_some() && umask < secrets);
}
