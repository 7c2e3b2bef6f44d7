"""smoke.py URL: writes and watches a pod, and prints the result of each step."""
import sys

from kubernetes import client, watch

configuration = client.Configuration()
configuration.host = sys.argv[1]
core = client.CoreV1Api(client.ApiClient(configuration))
pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def step(what, call, *args, **more):
    try:
        print(what, call(*args, **more).metadata.name or "")
    except client.ApiException as error:
        print(what, error.status, error.reason)


def events(**more):
    w = watch.Watch()
    for event in w.stream(core.list_namespaced_pod, "default", **more):
        print(event["type"], event["object"].metadata.labels)
        if event["type"] == "ADDED":
            step("replace", core.replace_namespaced_pod, "a", "default", {**pod, "metadata": {"name": "a", "labels": {"x": "y"}}})
        elif event["type"] == "MODIFIED":
            core.delete_namespaced_pod("a", "default")
        else:
            w.stop()


step("create", core.create_namespaced_pod, "default", pod)
step("create again", core.create_namespaced_pod, "default", pod)
events()
step("read", core.read_namespaced_pod, "a", "default")
try:
    events(resource_version="1")
except client.ApiException as error:
    print("watch", error.status)
