"""A real browser without a window, and a studio to look at with it."""

import json
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from importlib.util import find_spec

MISSING = (
    "no chromium with chromedriver and selenium here: the page was not opened in a browser; make browser installs them."
)
_FLAGS = """--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
--disable-component-update --disable-sync --disable-default-apps --hide-scrollbars --disable-dev-shm-usage"""


def programs():
    """Return the paths of the browser and its driver, or None."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    return (browser, driver) if browser and driver and find_spec("selenium") else None


@contextmanager
def opened(folder, width=1280, height=720):
    """Open a browser with a profile of its own in the folder; downloads go there too."""
    from selenium import webdriver

    browser, driver = programs()
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for flag in (*_FLAGS.split(), f"--user-data-dir={folder / 'profile'}", f"--window-size={width},{height}"):
        options.add_argument(flag)
    many = {"profile.default_content_setting_values.automatic_downloads": 1}
    options.add_experimental_option("prefs", {"download.default_directory": str(folder), **many})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    window = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        resize(window, width, height)
        yield window
    finally:
        window.quit()


def resize(window, width, height, dark=False):
    """Give the page this size, light or dark."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    window.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    window.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})


def complaints(window):
    """Return what the browser complained of since the last look: errors, warnings, unhandled rejections."""
    return [entry["message"] for entry in window.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]


def addresses(window):
    """Return where requests went since the last look."""
    messages = (json.loads(entry["message"])["message"] for entry in window.get_log("performance"))
    return [one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"]


def until(window, script, seconds=60.0):
    """Wait until a script returns something true, and return it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = window.execute_script(f"return {script}")
        if found:
            return found
        time.sleep(0.03)
    raise AssertionError(f"in vain for {seconds} s: {script}; {complaints(window)}")


#: Whether everything that was asked is answered and shown.
SETTLED = (
    "window.studio && studio.board && !studio.asking && studio.busy.hidden && studio.found "
    "&& !studio.head.classList.contains('stale') && !studio.show.plane.faded && studio.version"
)


@contextmanager
def studio(*arguments):
    """Start reluflow studio as a process of its own; gives its address and the process."""
    command = [sys.executable, "-m", "reluflow", "studio", *arguments, "--port", "0", "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        assert "http://127.0.0.1:" in line, line
        yield line.split(" at ")[1].split()[0], process
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()
