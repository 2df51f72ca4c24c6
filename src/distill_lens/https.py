"""For other devices in the network: this machine's addresses, a certificate, a QR code."""

import io
import os
import ssl
import tempfile
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from distill.core.errors import DistillError, extra_package
from distill.core.files import cache_folder, write_whole

ANY = {"0.0.0.0", "::"}
DAYS = 30  # that a certificate is good for
MARGIN = timedelta(days=1)  # that a kept one must still be good for
CERTIFICATE = "lens/certificate.pem"  # in the cache: certificate and private key


def _extra(module: str) -> Any:
    return extra_package(module, "https=true", "pip install 'distill[lens]'")


def addresses(host: str, required: bool) -> list[str]:
    """Where other devices find this machine. Without `required`, none where no package tells."""
    if host not in ANY:
        return [host]
    try:
        adapters = _extra("ifaddr").get_adapters()
    except DistillError:
        if required:
            raise
        return []
    ips = [ip.ip for adapter in adapters for ip in adapter.ips if isinstance(ip.ip, str)]
    unusable = {ip for ip in ips if ip_address(ip).is_loopback or ip_address(ip).is_link_local}
    usable = [ip for ip in ips if ip not in unusable]
    return sorted(usable, key=lambda ip: not ip.startswith("192.168."))  # home networks first


def certificate(names: list[str]) -> tuple[bytes, bytes]:
    """Certificate and private key, PEM, for these names and addresses, signed by itself."""
    x509 = _extra("cryptography.x509")
    ec = _extra("cryptography.hazmat.primitives.asymmetric.ec")
    forms = _extra("cryptography.hazmat.primitives.serialization")
    hashes = _extra("cryptography.hazmat.primitives.hashes")
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "distill lens")])
    now = datetime.now(UTC)
    alternatives = x509.SubjectAlternativeName([_name(x509, name) for name in names])
    signed = (
        x509.CertificateBuilder(subject_name=subject, issuer_name=subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))  # clocks differ
        .not_valid_after(now + timedelta(days=DAYS))
        .add_extension(alternatives, critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([x509.ExtendedKeyUsageOID.SERVER_AUTH]), False)
        .sign(key, hashes.SHA256())
    )
    pem = forms.Encoding.PEM
    secret = key.private_bytes(pem, forms.PrivateFormat.PKCS8, forms.NoEncryption())
    return signed.public_bytes(pem), secret


def _name(x509: Any, name: str) -> Any:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def context(names: list[str]) -> ssl.SSLContext:
    """A server's TLS. Its certificate is that of an earlier start, where it is still good.

    A browser that was told to go on then does not warn again. One that is expired, damaged, for
    other names, or that others could read is replaced.
    """
    path = cache_folder() / CERTIFICATE
    if previous := _cached_context(path, names):
        return previous
    both = b"".join(certificate(names))
    with suppress(OSError):  # a cache that cannot be written is no reason to end
        write_whole(path, both, private=True)
    fresh = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "both.pem"  # the folder is the user's alone
        file.write_bytes(both)
        fresh.load_cert_chain(file)
    return fresh


def _cached_context(path: Path, names: list[str]) -> ssl.SSLContext | None:
    """TLS with the kept certificate; None where there is none that can be used for these names."""
    x509 = _extra("cryptography.x509")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    now = datetime.now(UTC)
    try:
        if os.name == "posix" and path.stat().st_mode & 0o077:
            return None
        cert = x509.load_pem_x509_certificate(path.read_bytes())
        covered = cert.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        in_time = cert.not_valid_before_utc <= now <= cert.not_valid_after_utc - MARGIN
        if not in_time or not {_name(x509, name) for name in names} <= set(covered):
            return None
        tls.load_cert_chain(path, password="")  # or it would ask in the terminal
    except (OSError, ValueError, x509.ExtensionNotFound):
        return None
    return tls


def qr_code(text: str) -> str:
    """For the terminal, two rows of modules a line."""
    out = io.StringIO()
    _extra("segno").make(text, error="l", micro=False).terminal(out, compact=True)
    return out.getvalue()
