"""Made-up secrets, personal data and harmless queries for the tests of redaction.

Every secret is put together here at run time from parts, with random letters where a real one has its key: none was ever valid,
and no scanner of repositories finds one in this file.
"""

from __future__ import annotations

import base64
import random
import string
from collections.abc import Callable

LETTERS = string.ascii_letters + string.digits
LOWER = string.ascii_lowercase + string.digits
HEX = "0123456789abcdef"
NAMES = ("ada", "grace.h", "o'neill", "jürgen", "m_curie", "j.doe+news", "x", "li-wei", "tomás", "support-desk")
HOSTS = ("example.org", "mail.example.com", "example.co.uk", "sub.domain.example.net", "bücher.example")


def planted(seed: int = 7) -> list[tuple[str, str, str]]:
    """Return (kind, query, the part that must not be stored)."""
    source = random.Random(seed)

    def some(count: int, letters: str = LETTERS) -> str:
        # At least one digit and one letter, as every real key has.
        text = "".join(source.choices(letters, k=count - 2))
        return (
            text
            + source.choice([sign for sign in letters if sign.isdigit()])
            + source.choice([sign for sign in letters if sign.isalpha()])
        )

    found: list[tuple[str, str, str]] = []

    def add(kind: str, template: str, value: str) -> None:
        found.append((kind, template.replace("{}", value), value))

    for place, name in enumerate(NAMES * 3):
        frame = ("mail to {}", "{}", "who is {}?", "forward invoice 4711 from {} to accounting", "<{}>", "user={}")[place % 6]
        add("email", frame, f"{name}@{HOSTS[place % len(HOSTS)]}")
    add("email", "write to {}", "ada [at] example [dot] org")
    add("email", "write to {}", "ada(at)example.org")

    def jwt() -> str:
        parts = [base64.urlsafe_b64encode(text.encode()).decode().rstrip("=") for text in ('{"alg":"HS256"}', '{"sub":"12"}')]
        return ".".join([*parts, some(40)])

    keys: list[Callable[[], str]] = [
        lambda: "AK" + "IA" + some(16, string.ascii_uppercase + string.digits),
        lambda: "AS" + "IA" + some(16, string.ascii_uppercase + string.digits),
        lambda: "gh" + "p_" + some(36),
        lambda: "gh" + "s_" + some(36),
        lambda: "github" + "_pat_" + some(22) + "_" + some(50),
        lambda: "gl" + "pat-" + some(20),
        lambda: "sk" + "-" + some(48),
        lambda: "sk" + "-proj-" + some(60),
        lambda: "sk" + "-ant-" + some(50),
        lambda: "sk" + "_live_" + some(24),
        lambda: "rk" + "_test_" + some(24),
        lambda: "xo" + "xb-" + some(12, string.digits + "a") + "-" + some(24),
        lambda: "AI" + "za" + some(35),
        lambda: "hf" + "_" + some(34),
        lambda: "np" + "m_" + some(36),
        lambda: "SG" + "." + some(22) + "." + some(43),
        lambda: "py" + "pi-" + some(80),
        lambda: "dop" + "_v1_" + some(64, HEX),
        jwt,
    ]  # fmt: skip
    frames = ("why is {} rejected", "{}", "rotate {} in production", "error 401 with '{}'", 'curl -H "X-Api-Key: {}"')
    for turn in range(3):
        for place, make in enumerate(keys):
            add("key", frames[(place + turn) % len(frames)], make())
    for header in ("RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY", "EC PRIVATE KEY"):
        body = some(64) + "\n" + some(64)
        found.append(("key", f"how to convert -----BEGIN {header}-----\n{body}\n-----END {header}-----", body))
        found.append(("key", f"invalid pem -----BEGIN {header}----- {some(64)}", f"BEGIN {header}----- "))
    worded = (
        ("Authorization: Bearer {}", lambda: some(40)),
        ("bearer {} expired", lambda: some(32)),
        ("Authorization: Basic {}", lambda: base64.b64encode(some(18).encode()).decode()),
        ("postgres://app:{}@db.internal/shop", lambda: some(14)),
        ("https://bob:{}@git.example.org/x.git", lambda: some(20)),
        ("redis://:{}@cache:6379/0", lambda: some(16)),
        ("amqp://guest:{}@mq", lambda: "hunter" + some(4)),
        ("api_key={}", lambda: some(32)),
        ("api key: {}", lambda: some(24)),
        ("apikey {} not working", lambda: some(32)),
        ("client_secret = '{}'", lambda: some(40)),
        ("my secret is {}", lambda: some(20)),
        ("aws_secret_access_key={}", lambda: some(40, LETTERS + "/+")),
        ("AccountKey={}==;Endpoint", lambda: some(86, LETTERS + "/+")),
        ("token: {}", lambda: some(40, HEX)),
        ("access_token={}&scope=all", lambda: some(50)),
        ("?sig={}", lambda: some(43)),
        ('"private_key": "{}"', lambda: some(44)),
        ("password: {}", lambda: "tr0ub4dor&" + some(2)),
        ("password={}", lambda: "correcthorse"),
        ("pwd={} does not log in", lambda: some(8)),
        ("my password is {}", lambda: "S3cret!" + some(3)),
        ("passwd: {}", lambda: "letmein99"),
        ("passphrase={}", lambda: some(12)),
        ("DB_PASSWORD={}", lambda: some(16)),
        ("set PGPASSWORD={} first", lambda: some(10)),
        ("PIN: {}", lambda: some(4, "0123456789a")),
    )
    for _ in range(2):
        for template, make in worded:
            add("key", template, make())

    def digits(count: int) -> str:
        return "".join(source.choices(string.digits, k=count))

    phones = [
        f"+49 30 {digits(7)}",
        f"+49 (0)171 {digits(7)}",
        f"+1 415 555 {digits(4)}",
        f"+1-212-555-{digits(4)}",
        f"+44 20 7946 {digits(4)}",
        f"+44 7700 9{digits(5)}",
        f"+33 1 99 00 {digits(2)} {digits(2)}",
        f"+39 06 {digits(8)}",
        f"+34 612 34 {digits(2)} {digits(2)}",
        f"+81-3-1234-{digits(4)}",
        f"+91 98765 {digits(5)}",
        f"+61 2 5550 {digits(4)}",
        f"+86 138 0013 {digits(4)}",
        f"+55 11 91234-{digits(4)}",
        f"+7 912 345-{digits(2)}-{digits(2)}",
        f"+41 44 668 {digits(2)} {digits(2)}",
        f"0049 30 {digits(7)}",
        f"0044 20 7946 {digits(4)}",
        f"(415) 555-{digits(4)}",
        f"415-555-{digits(4)}",
        f"415.555.{digits(4)}",
        f"1-415-555-{digits(4)}",
        f"(020) 7946 {digits(4)}",
        f"030/{digits(8)}",
        f"+4930{digits(8)}",
        f"+1415555{digits(4)}",
    ]
    for place, phone in enumerate(phones):
        add("phone", ("who called from {}", "{}", "sms to {} failed", "contact: {}, evenings")[place % 4], phone)
    for template in ("call me at {}", "phone: {}", "tel. {}", "my mobile number is {}", "whatsapp {}", "Telefon {}"):
        add("phone", template, f"0171 {digits(7)}")

    def check(prefix: str, length: int) -> str:
        body = prefix + digits(length - len(prefix) - 1)
        total = 0
        for place, digit in enumerate(reversed(body)):
            value = int(digit) * (2 - place % 2)
            total += value - 9 if value > 9 else value
        return body + str(-total % 10)

    for place, (prefix, length) in enumerate(
        (("4", 16), ("51", 16), ("2221", 16), ("34", 15), ("6011", 16), ("3530", 16), ("36", 14)) * 3
    ):
        number = check(prefix, length)
        grouped = {
            0: number,
            1: " ".join(number[i : i + 4] for i in range(0, length, 4)),
            2: "-".join(number[i : i + 4] for i in range(0, length, 4)),
        }
        add("card", ("refund to {}", "{}", "card {} declined")[place % 3], grouped[place % 3])

    def iban(country: str, body: str) -> str:
        rest = int("".join(str(int(sign, 36)) for sign in f"{body}{country}00"))
        return f"{country}{98 - rest % 97:02}{body}"

    for place in range(5):
        for country, body in (("DE", digits(18)), ("GB", "NWBK" + digits(14)), ("FR", digits(23)), ("NL", "ABNA" + digits(10))):
            number = iban(country, body)
            spaced = " ".join(number[i : i + 4] for i in range(0, len(number), 4))
            add("iban", ("transfer to {} today", "{}", "is {} valid")[place % 3], spaced if place % 2 else number)
    for place in range(8):
        add(
            "ip",
            ("ban {}", "who is {}?", "ping {} fails", "ssh root@host at {}")[place % 4],
            f"203.0.113.{source.randint(1, 254)}",
        )
    for address in ("2001:db8::8a2e:370:7334", "2001:db8:85a3:0:0:8a2e:370:7334", "fe80::1ff:fe23:4567:890a"):
        add("ip", "route to {}", address)
    for place in range(8):
        number = f"{source.randint(100, 665)}-{source.randint(10, 99)}-{source.randint(1000, 9999)}"
        add("ssn", ("ssn {}", "employee {}", "form for {} lost", "{}")[place % 4], number)
    add("ssn", "social security number {}", f"{source.randint(100, 665)} {source.randint(10, 99)} {source.randint(1000, 9999)}")
    # Written as people write when they do not think of machines; not all of these can be known for what they are.
    hard = (
        ("email", "reach me: {}", "ada at example dot org"),
        ("email", "{} bounced", "ADA@EXAMPLE.ORG"),
        ("key", "pw {}", "hunter2!x"),
        ("key", "pass: {}", "hunter2"),
        ("key", "login bob / {}", "Tr0ub4dor&3"),
        ("key", "password {}", "hunter2secret"),
        ("key", "my password {} does not work", "summer2024"),
        ("key", "passwd {}", "monkey1"),
        ("key", "user ada pwd {}", "p4ssw0rd"),
        ("key", "wifi password {}!", "Blue$Lagoon"),
        ("key", "https://hooks.example.com/services/T0/B0/{}", some(24)),
        ("key", "https://x.example/?token={}", some(24)),
        ("key", "https://x.example/blob?sv=2022&sig={}&se=1", some(43)),
        ("key", "x-api-key {}", some(32)),
        ("key", "key {}", some(32)),
        ("key", "{} is leaked", some(40)),
        ("key", "secret={}", "opensesame"),
        ("phone", "ring {}", f"0171-{digits(7)}"),
        ("phone", "ring {}", f"415 555 {digits(4)}"),
        ("phone", "{}", f"+49.30.{digits(7)}"),
        ("phone", "reservation under {}", f"06 12 34 {digits(2)} {digits(2)}"),
        ("phone", "ext {}", f"+1 (415) 555-{digits(4)} x12"),
        ("card", "{} exp 12/27", "3782 822463 10005"),
        ("card", "cvv 123 for {}", check("4", 16)),
        ("iban", "iban {}", iban("CH", digits(17)).lower()),
        ("ip", "{}:8080 is down", "203.0.113.77"),
        ("ip", "block {}/24", "203.0.113.0"),
        ("ip", "nmap {}", "::ffff:203.0.113.9"),
        ("ssn", "my ssn is {}", f"{source.randint(100, 665)}{source.randint(10, 99)}{source.randint(1000, 9999)}"),
    )
    for kind, template, value in hard:
        add(kind, template, value)
    return list(dict.fromkeys(found))


HARMLESS = """
quiet hotel with pool near the lake|red running shoes size 42|how to reset my password|forgot password link expired
password manager comparison|is the password required for guests|change pin code of the safe|api key rotation best practice
where do I find my api key|token bucket rate limiting|secret garden book|secret santa gifts under 20|key lime pie recipe
keyboard shortcuts vs code|public key cryptography explained|private key vs public key|bearer bonds tax
basic authentication http|authorization header format|oauth token refresh flow|session token missing error|jwt decode online
what is a pem file|iphone 15 pro max 256gb|samsung galaxy s24 ultra|rtx 4090 24gb|thinkpad x1 carbon gen 11|sony wh-1000xm5
canon eos r6 mark ii|lego 75192|ikea billy 80x28x202|bosch gsr 18v-55|makita dhp484z|part number 8K0-615-301-A
sku 4006381333931|ean 4006381333931|upc 036000291452|isbn 978-3-16-148410-0|isbn 9783161484100|isbn 0-306-40615-2
issn 2049-3630|doi 10.1000/182|arxiv 2301.12345|rfc 2616 section 10.4.1|iso 8601 date format|iso/iec 27001:2022|din en 60529
python 3.11.7 release notes|node 20.11.1 lts|v1.2.3.4 changelog|version 10.0.19045.3803|upgrade to 2.4.1.0|firmware 1.0.9.88
chrome 120.0.6099.109|driver 31.0.15.4601|kernel 6.1.0-18-amd64|openssl 3.0.13|postgresql 16.2 docker|java 17.0.10+7
k8s v1.29.1 upgrade|numpy==1.26.4|torch>=2.1.0|2024-05-17 meeting notes|17.05.2024 protokoll|05/17/2024 invoice
12:30:45 timestamp format|2026-01-04T12:00:00Z|week 23 2024 report|q3 2023 revenue|1939-1945|1990s music|june 5 2024 at 10:30
unix time 1700000000|1700000000000 milliseconds|24/7 support|order 100045678|order no. 2024-00123-45|invoice 2023/04/1187
ticket #48213|case 00123456|tracking 1Z999AA10123456784|tracking rr123456789de|flight lh2034|train ice 579|room 214|gate b42
zip 90210|postal code 10115 berlin|po box 1234|1000000 in words|3.14159265358979|2^31-1 2147483647|1e-6 tolerance
0.05 significance|99.9 percentile latency|404 not found|error 0x80070057|error code 1603|ora-00942|e11000 duplicate key
sqlstate 23505|exit code 137|http 502 bad gateway|errno 28|std::vector<int> push_back|foo::bar::baz|a::b operator
list[dict[str, int]]|for i in range(10): print(i)|x = y ** 2 + 3*z|SELECT * FROM users WHERE id = 42|git rebase -i HEAD~3
commit 3f2c1a9|sha256 of a file|md5 d41d8cd98f00b204e9800998ecf8427e|git checkout 9fceb02d0ae598e95dc970b74767f19372d61af8
docker run -p 8080:80 nginx|kubectl get pods -n prod|chmod 755 script.sh|npm install lodash@4.17.21
pip install requests==2.31.0|uuid 550e8400-e29b-41d4-a716-446655440000|regex \\d{3}-\\d{4}|localhost:3000 refused
port 5432 in use|subnet mask /24|cidr notation|ipv6 vs ipv4|mac address format|dns ttl 300|mtu 1500|@dataclass frozen
@property python|tweet @ringtrue|meet at noon|email template for invoices|email marketing tools|mailto link html
phone case iphone 14|phone number format e164|call center software|mobile first design|tel aviv hotels|fax machine repair
cell membrane|text me later song|whatsapp web login|credit card comparison|visa requirements 2024|mastercard logo|amex lounge
iban checker|iban length by country|what is a bic code|ssn verification process|social security office hours|ip camera outdoor
ip67 vs ip68|static ip address cost|16gb ddr5 6000|4x4 matrix inverse|1920x1080 wallpaper|5g bands n78 n28|12v 7ah battery
m3x20 screw|3/8-16 unc bolt|6204-2rs bearing|285/35r19 tyre|size 10-12 dress|a4 210x297|400 000 km service|1.2 kg bag
section 4.2.1 of the manual|chapter 12.3.4.1 summary|§ 242.1.2.3 bgb|article 6(1)(f) gdpr|psalm 23:1-6|matthew 5:3-12
john 3:16|temperature -40|5-7 business days|100-200 eur hotels|2-3-2 formation|555-timer circuit|555 timer circuit|800-53 nist
80-20 rule|bus 100 to airport|line 7|a380-800|boeing 737-800|f-150 2021|e-class w213|bmw 320d 2019|vw golf 7 1.6 tdi
tesla model 3 2023|mp3 to wav|h.264 vs h.265|utf-8 bom|base64 decode|ascii table 0-127|rgb 255,0,128|hex color ff5733|#1e90ff
oklch 0.7 0.1 200|gpt-4 context length|bert-base-uncased|all-minilm-l6-v2|llama-3-8b|bm25 k1=1.2 b=0.75|ndcg@10
recall@100 drop|top-k 50|key=value pairs in bash|password = null in config|token=none error|secret = true
foreign key constraint fails|primary key is id|pass the salt|passport renewal 2024|passenger 57|compass app
token: unexpected end|auth: invalid|signature: missing argument 2|keyfile.json not found|key_error pandas|keyword research
pinterest ideas|pin 13 arduino|call 112 emergency|call stack exceeded 10000|phone under 500 euro|mobile 2000 mah|tel 4 aviv
text 16px font|cell a1:b20|00 flour 1000 g|+1 for this idea|+20 degrees weather|0171 vorwahl|030 berlin vorwahl
1234 5678 9012 3456 pattern|0000-0000-0000 format|12345678901234567890|999-99-9999 ssn example|basic instinct 1992 film
bearer of bad news 2024edition|sk-ii facial treatment|eyjafjallajökull eruption 2010|fe80 link local|sk-learn pipeline
password oauth2 grant type|password sha256 hash|wifi password wpa2 router|windows password windows11 reset|password base64
password reset-link email|password office365 admin|pwd command linux|password argon2id vs bcrypt|password 2fa codes|pwd %cd%
password 12characters minimum|password iphone15 backup|mysql password mysql8 native|password pbkdf2 rounds|password utf8 umlauts
password step2 verification|passport a1234567 example|bypass oauth2 login|password don't match|password/username form
sk telecom|ask-me-anything thread|pk fire|ac repair|gh actions matrix|hf hub cli|npm ci vs install|sg airport
""".strip()


def harmless() -> list[str]:
    """Return queries that hold nothing to hide: product numbers, versions, code, dates, ISBNs, words about secrets."""
    return [query for line in HARMLESS.splitlines() for query in line.split("|")]
