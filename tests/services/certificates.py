"""Certificates for servers of tests: an authority, and what it signs."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)


class Authority:
    """Signs certificates of servers on this machine."""

    def __init__(self, name: str = "authority of the tests") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        signed = _unsigned(self._name, self._name, self._key, datetime.now(UTC) + DAY)
        usage = x509.BasicConstraints(ca=True, path_length=None)
        self._certificate = signed.add_extension(usage, critical=True).sign(self._key, hashes.SHA256())

    def write(self, path: Path) -> Path:
        """Write the certificate of the authority, which clients trust."""
        path.write_bytes(self._certificate.public_bytes(Encoding.PEM))
        return path

    def issue(self, path: Path, *, valid_for: timedelta = DAY) -> Path:
        """Write a new private key of the server 127.0.0.1, and its certificate. A negative time: it has expired."""
        key = ec.generate_private_key(ec.SECP256R1())
        unsigned = _unsigned(_named("127.0.0.1"), self._name, key, datetime.now(UTC) + valid_for)
        host = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
        certificate = unsigned.add_extension(host, critical=False).sign(self._key, hashes.SHA256())
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        path.write_bytes(private + certificate.public_bytes(Encoding.PEM))
        return path


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _unsigned(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, until: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(until - 30 * DAY)
        .not_valid_after(until)
    )
