#!/usr/bin/env python3
"""A real Slurm on this machine: srun, sbatch, preemption, requeueing and resuming, with the script of docs/clusters.md.

    bench/slurm.py [--build build] [--steps 1500] [--out report.md]

Needs Debian's slurm-wlm and munge, and root. Starts munged, slurmctld and two slurmds (both nodes are this machine) from a
folder of its own, with ports of its own, and ends them. Every check that fails ends it with what went wrong.
"""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from faults import write_data
from harness import ROOT, heading, parser_for, report, row

PATIENCE_S = 180

CONFIG = """
ClusterName=one
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
SchedulerParameters=sched_interval=1,batch_sched_delay=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
KillWait=5
NodeName=node1 NodeHostname={host} NodeAddr=127.0.0.1 Port={port1} CPUs=4
NodeName=node2 NodeHostname={host} NodeAddr=127.0.0.1 Port={port2} CPUs=4
PartitionName=spare Nodes=node1,node2 Default=YES PriorityTier=1 GraceTime=60 MaxTime=60
PartitionName=urgent Nodes=node1,node2 PriorityTier=10 PreemptMode=off MaxTime=60
"""


def require(holds, text):
    if not holds:
        sys.exit(f"bench/slurm.py: {text}")


def wait_until(what, ready):
    deadline = time.monotonic() + PATIENCE_S
    while not ready():
        require(time.monotonic() < deadline, f"waited {PATIENCE_S} s until {what}")
        time.sleep(0.2)


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


@contextlib.contextmanager
def cluster(folder):
    """munged, slurmctld and two slurmds; gives the environment of their users."""
    missing = [name for name in ("munged", "slurmctld", "slurmd", "srun", "sbatch") if not shutil.which(name)]
    require(not missing, f"{', '.join(missing)} missing: install slurm-wlm and munge")
    require(os.geteuid() == 0, "starts daemons that only root can start")
    (folder / "state").mkdir()
    key = folder / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o600)
    port, port1, port2 = free_ports(3)
    config = folder / "slurm.conf"
    config.write_text(CONFIG.format(host=socket.gethostname(), folder=folder, port=port, port1=port1, port2=port2))
    environment = dict(os.environ, SLURM_CONF=str(config))
    daemons = []

    def start(*command):
        daemons.append(subprocess.Popen(list(map(str, command)), env=environment, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, start_new_session=True))

    try:
        start("munged", "--foreground", f"--key-file={key}", f"--socket={folder}/munge.socket", f"--pid-file={folder}/munged.pid",
              f"--log-file={folder}/munged.log", f"--seed-file={folder}/munge.seed")
        wait_until("munged answers", (folder / "munge.socket").exists)
        start("slurmctld", "-D", "-c")
        for node in ("node1", "node2"):
            start("slurmd", "-D", "-N", node)

        def idle():
            asked = subprocess.run(["sinfo", "-h", "-p", "spare", "-t", "idle", "-o", "%D"], env=environment, capture_output=True, text=True)
            return asked.stdout.strip() == "2"
        wait_until("both nodes are idle", idle)
        yield environment
    finally:
        for daemon in reversed(daemons):
            daemon.send_signal(signal.SIGTERM)
        for daemon in daemons:
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()


class Runs:
    """Runs of one experiment: the same model, data and seed."""

    def __init__(self, folder, build, steps, environment):
        self.folder, self.steps = folder, steps
        self.environment = dict(environment, PATH=f"{Path(build).resolve()}:{environment['PATH']}")
        (folder / "data").mkdir()
        write_data(folder / "data")

    def words(self, *more):
        return ["--task", "sst2", "--data", self.folder / "data", "--model", "bert-tiny", "--global-batch", "12", "--max-length", "16",
                "--strategy", "ddp", "--lr", "1e-3", "--threads", "1", "--steps", self.steps, *more]

    def call(self, *command):
        done = subprocess.run(list(map(str, command)), cwd=self.folder, env=self.environment, capture_output=True, text=True)
        require(done.returncode == 0, f"{' '.join(map(str, command))} exits with {done.returncode}:\n{done.stderr[-2000:]}")
        return done

    def under(self, name, launcher, *more):
        return self.call(*launcher, "syncopate", "train", *self.words(*more), "--out", self.folder / name)

    def bits(self, name):
        return (self.folder / name / "model/model.safetensors").read_bytes(), (self.folder / name / "loss_0.txt").read_bytes()

    def step_count(self, name):
        path = self.folder / name / "steps.jsonl"
        return path.read_text().count("\n") if path.exists() else 0

    def batch_script(self):
        text = (ROOT / "docs/clusters.md").read_text()
        path = self.folder / "train.sbatch"
        path.write_text(re.search(r"```bash\n(#!/bin/bash\n.*?)```", text, re.S)[1])
        return path

    def submit(self, *words):
        """A job's number."""
        return self.call("sbatch", "--parsable", *words).stdout.strip().split(";")[0]

    def job(self, number):
        asked = self.call("scontrol", "show", "job", number).stdout
        return dict(re.findall(r"(\w+)=(\S*)", asked))


def await_end(runs, job):
    """Once more, and to its end. Slurm lets a requeued job wait for two minutes; not here."""
    def ended():
        state = runs.job(job)
        if state["JobState"] == "PENDING" and state["Restarts"] == "1":
            subprocess.run(["scontrol", "update", f"JobId={job}", "StartTime=now"], env=runs.environment, capture_output=True)  # unless it just began
        return state["JobState"] in ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT")
    wait_until("the job has ended", ended)
    state = runs.job(job)
    require(state["JobState"] == "COMPLETED" and state["Restarts"] == "1", f"ended as {state['JobState']} after {state['Restarts']} restarts")


def preempted(runs, script):
    """A job that gives way to an urgent one and goes on afterwards. Returns what is worth reporting."""
    job = runs.submit("--partition=spare", script, *runs.words())
    name = f"runs/syncopate-{job}"
    wait_until("the job makes steps", lambda: runs.step_count(name) > 30)
    before = time.monotonic()
    urgent = runs.submit("--partition=urgent", "--ntasks=8", "--output=/dev/null", "--wrap=sleep 4")
    wait_until("the urgent job runs", lambda: runs.job(urgent)["JobState"] != "PENDING")
    gave_way = time.monotonic() - before
    steps = runs.step_count(name)
    require(30 < steps < runs.steps, f"was preempted after {steps} of {runs.steps} steps")
    require((runs.folder / name / "checkpoint.safetensors").exists(), "a preempted job has saved")
    await_end(runs, job)
    log = (runs.folder / f"syncopate-{job}.log").read_text()
    require("stopped after step" in log, f"does not say that it stopped:\n{log[-2000:]}")
    return name, steps, gave_way


def signalled(runs, script):
    """scancel --signal=TERM: saves, queues again, goes on."""
    job = runs.submit("--partition=spare", script, *runs.words())
    name = f"runs/syncopate-{job}"
    wait_until("the job makes steps", lambda: runs.step_count(name) > 30)
    runs.call("scancel", "--signal=TERM", job)
    await_end(runs, job)
    return name


def killed(runs, launcher, more):
    """One worker of three is killed; the sentence and the seconds until the step is over."""
    command = [*launcher, "syncopate", "train", *runs.words("--steps", "1000000", *more), "--out", runs.folder / "killed"]
    process = subprocess.Popen(list(map(str, command)), cwd=runs.folder, env=runs.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wait_until("the workers make steps", lambda: runs.step_count("killed") > 10)
    workers = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                variables = dict(item.split(b"=", 1) for item in (entry / "environ").read_bytes().split(b"\0") if b"=" in item)
                if str(runs.folder / "killed").encode() in (entry / "cmdline").read_bytes() and b"SLURM_PROCID" in variables:
                    workers[int(variables[b"SLURM_PROCID"])] = int(entry.name)
    require(1 in workers, f"finds no worker 1 among {workers}")
    before = time.monotonic()
    os.kill(workers[1], signal.SIGKILL)
    _, err = process.communicate(timeout=PATIENCE_S)
    seconds = time.monotonic() - before
    require("syncopate: rank 1 died during" in err, f"does not name the dead rank:\n{err[-2000:]}")
    require(not any(Path(f"/proc/{pid}").exists() for pid in workers.values()), "leaves workers behind")
    shutil.rmtree(runs.folder / "killed")
    return seconds


def main():
    parser = parser_for(__doc__)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="syncopate-slurm-"))
    folder.chmod(0o755)
    rows = []
    try:
        with cluster(folder) as environment:
            runs = Runs(folder, arguments.build, arguments.steps, environment)
            script = runs.batch_script()
            runs.under("straight", [], "--workers", "3", "--backend", "shm")
            runs.under("foil", [], "--workers", "3", "--backend", "shm", "--seed", "2")
            straight = runs.bits("straight")
            require(runs.bits("foil") != straight, "another seed gives the same bits")

            def same(name, what, note=""):
                require(runs.bits(name) == straight, f"{what}: other bits than without Slurm")
                rows.append(row(what, "same bits", note))
                print(f"{what}: same bits. {note}", file=sys.stderr, flush=True)

            runs.under("srun", ["srun", "-N1", "-n3"])
            same("srun", "`srun -N1 -n3`")
            runs.environment["SYNCOPATE_TOKEN"] = "of these tests"
            runs.under("nodes", ["srun", "-N2", "-n3"], "--master", f"127.0.0.1:{free_ports(1)[0]}")
            same("nodes", "`srun -N2 -n3`", "two nodes, which are one machine")
            del runs.environment["SYNCOPATE_TOKEN"]
            runs.under("mpi", ["srun", "--mpi=pmix", "-N1", "-n3"], "--backend", "mpi")
            require(json.loads((folder / "mpi/env.json").read_text())["backend"] == "mpi", "is not over MPI")
            same("mpi", "`srun --mpi=pmix -N1 -n3`, `--backend mpi`")
            name, steps, gave_way = preempted(runs, script)
            same(name, "`sbatch`, preempted, requeued, resumed", f"stopped after {steps} of {runs.steps} steps; the urgent job ran {gave_way:.1f} s after it came")
            same(signalled(runs, script), "`scancel --signal=TERM`, requeued, resumed")
            for launcher, more in (("srun", []), ("srun --mpi=pmix", ["--backend", "mpi"])):
                seconds = killed(runs, [*launcher.split(), "-N1", "-n3"], more)
                rows.append(row(f"`{' '.join([launcher, '-N1 -n3', *more])}`, kill -9 of rank 1", "rank 1 is named", f"all gone after {seconds:.1f} s"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    version = subprocess.run(["slurmd", "-V"], capture_output=True, text=True).stdout.strip()
    report([f"# Under a real Slurm ({version}, all daemons on one machine)", "",
            f"`bench/slurm.py`: bert-tiny, ddp, 3 workers, {arguments.steps} steps; compared with `--workers 3 --backend shm` by the bytes of the",
            "model and of rank 0's losses. Another seed gives other bytes.", "", *heading("how", "model and losses", ""), *rows], arguments.out)


if __name__ == "__main__":
    main()
